//! Changes of links in mid-run, as a scenario file describes them.

use fairpath_net::{Filter, Rate};

use super::reader::{Fault, Value};
use crate::error::Problem;
use crate::keys;
use crate::model::{Change, ChangeKind, LinkIndex};
use crate::nearest::nearest;
use crate::topology::Topology;

/// The directions of a wire that are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Both,
    Forward,
    Back,
}

/// Reads an entry `[[change]]`, and says where its time stands. It is a change for each link and
/// direction.
pub(crate) fn read_change(value: &Value, network: &Topology) -> Result<(usize, Vec<Change>), Fault> {
    let table = value.table(&keys::CHANGE)?;
    let at = table.needed("at", Value::time)?;
    let direction = table.optional("direction", read_direction)?;
    let names = match table.get("link") {
        Some(value) => value.as_list().unwrap_or_else(|| vec![value]),
        None => return Err(table.missing("link")),
    };
    for (one, other) in [("rate", "up"), ("drop", "up"), ("drop", "rate")] {
        table.exclude(one, other)?;
    }
    let up = table.optional("up", Value::flag)?.map(|up| ChangeKind::Up(up.value));
    let rate = table.optional("rate", read_rate)?.map(|rate| ChangeKind::Rate(rate.value));
    let drop = table.optional("drop", read_drop)?.map(|filter| ChangeKind::Filter(filter.value));
    let kind = up.or(rate).or(drop).ok_or_else(|| table.missing("up"))?;
    table.close("here")?;
    let mut changes = Vec::new();
    for name in &names {
        for link in find(name, network, direction.map(|direction| direction.value))? {
            changes.push(Change { at: at.value, link, kind: kind.clone() });
        }
    }
    Ok((at.at, changes))
}

/// A rate that does not change by itself; zero is allowed here.
fn read_rate(value: &Value) -> Result<Rate, Fault> {
    match value.as_text() {
        Some("unlimited") => Ok(Rate::Unlimited),
        _ => value.rate().map(Rate::Fixed),
    }
}

fn read_drop(value: &Value) -> Result<Filter, Fault> {
    if !value.is_table() {
        return match value.as_text() {
            Some("all") => Ok(Filter::DropAll),
            Some("none") => Ok(Filter::Pass),
            _ => Err(value
                .not(format!("\"all\", \"none\" or a table with one of the keys {}", keys::DROP.names().join(", ")))),
        };
    }
    let table = value.table(&keys::DROP)?;
    let (kind, amount) = table.the_one()?;
    let filter = match kind {
        "larger" => Filter::DropLarger(amount.size()?),
        "share" => Filter::DropShare(amount.share()?),
        "every" => Filter::DropEvery(amount.whole()?),
        _ => Filter::DropNext(amount.whole()?),
    };
    table.close("here")?;
    Ok(filter)
}

fn read_direction(value: &Value) -> Result<Direction, Fault> {
    Ok(match value.word("direction")? {
        "forward" => Direction::Forward,
        "back" => Direction::Back,
        _ => Direction::Both,
    })
}

/// The links that a name and a direction mean.
fn find(name: &Value, network: &Topology, direction: Option<Direction>) -> Result<Vec<LinkIndex>, Fault> {
    let text = name.text("the name of a link, like \"wifi\"")?;
    let Some(link) = network.link(text) else {
        let known: Vec<&str> = network.links().iter().map(|link| link.name.as_str()).collect();
        let problem = Problem::UnknownName {
            what: "link",
            name: text.to_owned(),
            nearest: nearest(text, known.iter().copied()),
            known: if known.len() > 20 { Vec::new() } else { known.into_iter().map(str::to_owned).collect() },
        };
        return Err(name.fault(problem));
    };
    // A wire's forward direction is the one that was added first.
    let back = network.opposite(link).filter(|back| *back > link);
    match (back, direction) {
        (Some(back), None | Some(Direction::Both)) => Ok(vec![link, back]),
        (Some(back), Some(Direction::Back)) => Ok(vec![back]),
        (Some(_), Some(Direction::Forward)) | (None, None) => Ok(vec![link]),
        (None, Some(_)) => {
            let reason = format!("{text:?} is one direction already; leave direction out");
            Err(name.fault(Problem::Senseless { reason }))
        }
    }
}
