//! Models that need no run: where window rules settle, and which rates of a stream are best.

use std::time::Duration;

use fairpath_core::{Groups, PathId};
use fairpath_engine::{Epsilon, Ewtcp};
use fairpath_rate::{Bound as LateBound, Delays, MARGIN, PROBING, PathModel, Plan};
use fairpath_scenario::units;
use fairpath_theory::{FluidRule, Link, Network, Price, Route, User};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;
use serde_json::json;

use crate::convert::{from_json, table};
use crate::errors::wrong;

/// More routes would take the solver minutes.
const ROUTES_MAX: usize = 300;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkKeys {
    links: Vec<LinkKeys>,
    users: Vec<UserKeys>,
    packet: String,
    window_least: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkKeys {
    name: Option<String>,
    rate: String,
    loss: Option<f64>,
    loss_at_capacity: Option<f64>,
    exponent: Option<f64>,
    overflow: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserKeys {
    congestion: String,
    count: Option<u32>,
    epsilon: Option<f64>,
    increase: Option<f64>,
    routes: Vec<RouteKeys>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteKeys {
    links: Vec<LinkName>,
    rtt: String,
}

/// A link by its name or its place.
#[derive(Deserialize)]
#[serde(untagged)]
enum LinkName {
    Place(usize),
    Name(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamKeys {
    paths: Vec<PathKeys>,
    deadline: String,
    bound: String,
    groups: Option<Vec<Vec<u32>>>,
    probing: Option<f64>,
    margin: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathKeys {
    loss: f64,
    rtt: String,
    deviation: Option<String>,
}

/// Where a network settles in the fluid model.
#[pyfunction]
pub(crate) fn settle<'py>(py: Python<'py>, keys: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let keys: NetworkKeys = read(keys)?;
    let network = network(&keys).map_err(wrong)?;
    let found = py.detach(|| network.equilibrium()).map_err(|error| wrong(error.to_string()))?;
    let user = |user: &fairpath_theory::UserState| {
        let routes = user.routes.iter().map(|route| {
            json!({ "rate_bps": route.rate.as_bps(), "window_packets": route.window_packets, "loss": route.loss })
        });
        json!({ "rate_bps": user.rate().as_bps(), "routes": routes.collect::<Vec<_>>() })
    };
    let link = |link: &fairpath_theory::LinkState| json!({ "rate_bps": link.rate.as_bps(), "loss": link.loss });
    let whole = json!({
        "users": found.users.iter().map(user).collect::<Vec<_>>(),
        "links": found.links.iter().map(link).collect::<Vec<_>>(),
        "residual": found.residual,
    });
    from_json(py, &whole)
}

/// The friendly rates of a stream that bring the most in time.
#[pyfunction]
pub(crate) fn best_rates<'py>(py: Python<'py>, keys: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let keys: StreamKeys = read(keys)?;
    let plan = plan(&keys).map_err(wrong)?;
    let rates = |rates: &[fairpath_rate::PacketRate]| rates.iter().map(|rate| rate.per_second()).collect::<Vec<_>>();
    let whole = json!({
        "rates_per_second": rates(&plan.rates),
        "repair_per_second": rates(&plan.repair.rates),
        "repair_share": plan.repair.share,
        "goodput_per_second": plan.goodput.per_second(),
    });
    from_json(py, &whole)
}

fn read<T: for<'de> Deserialize<'de>>(keys: &Bound<'_, PyDict>) -> PyResult<T> {
    let keys = table(keys, "", 0)?;
    keys.try_into().map_err(|error: toml::de::Error| wrong(error.to_string().trim_end().to_owned()))
}

fn network(keys: &NetworkKeys) -> Result<Network, String> {
    if keys.users.iter().map(|user| user.routes.len()).sum::<usize>() > ROUTES_MAX {
        return Err(format!("more than {ROUTES_MAX} routes; their equilibrium would take minutes"));
    }
    if !(keys.window_least.is_finite() && keys.window_least >= 0.0) {
        return Err(format!("window_least = {}: a number of packets from 0 on is needed", keys.window_least));
    }
    let links = keys.links.iter().enumerate().map(|(at, link)| self::link(at, link)).collect::<Result<_, _>>()?;
    let users = keys.users.iter().enumerate().map(|(at, user)| self::user(at, user, keys)).collect::<Result<_, _>>()?;
    let packet = units::size(&keys.packet).map_err(|error| format!("packet: {error}"))?;
    Ok(Network { links, users, packet, window_least: keys.window_least })
}

fn link(at: usize, keys: &LinkKeys) -> Result<Link, String> {
    let key = |key: &str| format!("links[{at}].{key}");
    let capacity = units::rate(&keys.rate).map_err(|error| format!("{}: {error}", key("rate")))?;
    let price = match (keys.loss, keys.loss_at_capacity, keys.overflow) {
        (None, None, None | Some(false)) => Price::Saturated,
        (None, None, Some(true)) => Price::Overflow,
        (Some(loss), None, None) => Price::Fixed { loss: share(loss, &key("loss"))? },
        (None, Some(at_capacity), None) => {
            let exponent = keys.exponent.ok_or_else(|| format!("{}: loss_at_capacity needs it", key("exponent")))?;
            if !(exponent.is_finite() && exponent > 0.0) {
                return Err(format!("{} = {exponent}: a number above 0 is needed", key("exponent")));
            }
            Price::Power { at_capacity: share(at_capacity, &key("loss_at_capacity"))?, exponent }
        }
        _ => return Err(format!("links[{at}]: loss, loss_at_capacity and overflow exclude each other")),
    };
    Ok(Link { capacity, price })
}

fn user(at: usize, keys: &UserKeys, all: &NetworkKeys) -> Result<User, String> {
    let rule = match keys.congestion.as_str() {
        "reno" => FluidRule::Reno,
        "cubic" => FluidRule::Cubic,
        "lia" => FluidRule::Lia,
        "olia" => FluidRule::Olia,
        "balia" => FluidRule::Balia,
        "coupled" => FluidRule::Coupled,
        "coupled_cubic" => FluidRule::CoupledCubic,
        "ewtcp" => FluidRule::Ewtcp(Ewtcp { increase: keys.increase }),
        "epsilon" => FluidRule::Epsilon(Epsilon { epsilon: keys.epsilon.unwrap_or(1.0) }),
        other => {
            let known = "reno, cubic, lia, olia, balia, coupled, coupled_cubic, ewtcp, epsilon";
            return Err(format!("users[{at}].congestion = {other:?}: the fluid model has {known}"));
        }
    };
    for (name, value) in [("epsilon", keys.epsilon), ("increase", keys.increase)] {
        if let Some(value) = value
            && (keys.congestion != if name == "epsilon" { "epsilon" } else { "ewtcp" } || !value.is_finite())
        {
            return Err(format!("users[{at}].{name} = {value}: {} has no such parameter", keys.congestion));
        }
    }
    let route = |(number, keys): (usize, &RouteKeys)| -> Result<Route, String> {
        let key = format!("users[{at}].routes[{number}]");
        let place = |link: &LinkName| match link {
            LinkName::Place(place) => Ok(*place),
            LinkName::Name(name) => {
                let found = all.links.iter().position(|link| link.name.as_deref() == Some(name));
                found.ok_or_else(|| format!("{key}.links: there is no link named {name:?}"))
            }
        };
        let rtt = units::time(&keys.rtt).map_err(|error| format!("{key}.rtt: {error}"))?;
        Ok(Route { links: keys.links.iter().map(place).collect::<Result<_, _>>()?, rtt })
    };
    let routes = keys.routes.iter().enumerate().map(route).collect::<Result<_, _>>()?;
    Ok(User { count: keys.count.unwrap_or(1), rule, routes })
}

fn plan(keys: &StreamKeys) -> Result<Plan, String> {
    let time = |text: &str, key: &str| units::time(text).map_err(|error| format!("{key}: {error}"));
    let path = |(at, keys): (usize, &PathKeys)| -> Result<PathModel, String> {
        let mean = time(&keys.rtt, &format!("paths[{at}].rtt"))?;
        let deviation = match &keys.deviation {
            Some(deviation) => time(deviation, &format!("paths[{at}].deviation"))?,
            None => mean,
        };
        if mean.is_zero() {
            return Err(format!("paths[{at}].rtt = {:?}: a round trip takes some time", keys.rtt));
        }
        Ok(PathModel::new(share(keys.loss, &format!("paths[{at}].loss"))?, Delays { mean, deviation }))
    };
    if keys.paths.is_empty() {
        return Err("paths: at least one is needed".to_owned());
    }
    let paths = keys.paths.iter().enumerate().map(path).collect::<Result<Vec<_>, _>>()?;
    let bound = match keys.bound.as_str() {
        "chebyshev" => LateBound::Chebyshev,
        "cantelli" => LateBound::Cantelli,
        "exponential" => LateBound::Exponential,
        other => return Err(format!("bound = {other:?}: there are chebyshev, cantelli and exponential")),
    };
    let deadline: Duration = time(&keys.deadline, "deadline")?;
    let probing = share(keys.probing.unwrap_or(PROBING), "probing")?;
    let margin = keys.margin.unwrap_or(MARGIN);
    if !(margin.is_finite() && margin >= 0.0) {
        return Err(format!("margin = {margin}: a number from 0 on is needed"));
    }
    let groups = groups(keys)?;
    Plan::best_in(&groups, &paths, deadline, &bound, probing, margin).map_err(|error| error.to_string())
}

/// The partition that is given; without one all paths are together.
fn groups(keys: &StreamKeys) -> Result<Groups, String> {
    let count = keys.paths.len() as u32;
    let Some(groups) = &keys.groups else { return Ok(Groups::one((0..count).map(PathId::new))) };
    let mut members: Vec<u32> = groups.concat();
    members.sort_unstable();
    if members != (0..count).collect::<Vec<_>>() {
        return Err(format!("groups = {groups:?}: each path from 0 to {} stands in one group", count - 1));
    }
    Ok(Groups::from_members(groups.iter().map(|group| group.iter().copied().map(PathId::new))))
}

fn share(value: f64, key: &str) -> Result<f64, String> {
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(format!("{key} = {value}: a share from 0 to 1 is needed"))
    }
}
