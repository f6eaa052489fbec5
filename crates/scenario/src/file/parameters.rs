//! The parameters of congestion control and detection, as a scenario file describes them.

use core::time::Duration;

use fairpath_core::ByteCount;
use fairpath_engine::{
    Alone, BaseRtt, CoupledConstants, Cruise, EngineConfig, LongestQueue, Losses, PathMetric, SlowStart,
};

use super::reader::{Fault, Table, Value};
use crate::error::Problem;
use crate::keys::{self, Keys};

/// Least period of a detector. More often no path has anything new to say, and a detector that
/// catches up after a long pause would not end.
const PERIOD_LEAST: Duration = Duration::from_millis(10);

/// The parameters, in the order in which they hold: later ones replace earlier ones. The rest is
/// left to the algorithm.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters(Vec<Setting>);

/// A value, and what it does.
#[derive(Clone, Copy, Debug)]
enum Setting {
    Number(f64, fn(&mut EngineConfig, f64)),
    Whole(u32, fn(&mut EngineConfig, u32)),
    Flag(bool, fn(&mut EngineConfig, bool)),
    Time(Duration, fn(&mut EngineConfig, Duration)),
    Word(&'static str, fn(&mut EngineConfig, &str)),
}

/// Reads the table of one algorithm.
type Read = fn(&mut Parameters, &Table) -> Result<(), Fault>;

impl Parameters {
    pub(crate) fn read(value: &Value) -> Result<Self, Fault> {
        let mut read = Self::default();
        let table = value.table(&keys::PARAMETERS)?;
        read.whole(&table, "initial_window", |engine, packets| {
            // A number of packets means that number, not the most that it may be.
            engine.parameters.aimd.initial_window_datagrams = packets;
            engine.parameters.aimd.initial_window_cap = ByteCount::MAX;
            engine.parameters.bbr.initial_window_datagrams = packets;
            engine.parameters.bbr.initial_window_cap = ByteCount::MAX;
        })?;
        read.whole(&table, "min_window", |engine, packets| engine.parameters.aimd.min_window_datagrams = packets)?;
        read.whole(&table, "min_ssthresh", |engine, packets| engine.parameters.aimd.min_ssthresh_datagrams = packets)?;
        read.flag(&table, "hystart", |engine, hystart| {
            engine.parameters.aimd.slow_start = if hystart { SlowStart::HyStartPlusPlus } else { SlowStart::Standard };
        })?;
        read.word(&table, "losses", |engine, word| {
            engine.parameters.aimd.losses = if word == "by_queue" { Losses::ByQueue } else { Losses::Congestion };
        })?;
        read.word(&table, "alone", |engine, word| {
            engine.parameters.alone = match word {
                "reno" => Alone::Reno,
                "cubic" => Alone::Cubic,
                _ => Alone::Own,
            };
        })?;
        read.number(&table, "epsilon", |engine, epsilon| engine.parameters.epsilon.epsilon = epsilon)?;
        let tables: [(&str, &'static Keys, Read); 11] = [
            ("cubic", &keys::CUBIC, Self::read_cubic),
            ("olia", &keys::OLIA, Self::read_olia),
            ("ewtcp", &keys::EWTCP, Self::read_ewtcp),
            ("coupled", &keys::COUPLED, Self::read_coupled),
            ("wvegas", &keys::WVEGAS, Self::read_wvegas),
            ("daimd", &keys::DAIMD, Self::read_daimd),
            ("coupled_bbr", &keys::COUPLED_BBR, Self::read_coupled_bbr),
            ("concordance", &keys::CONCORDANCE, Self::read_concordance),
            ("trendline", &keys::TRENDLINE, Self::read_trendline),
            ("ssc", &keys::SSC, Self::read_ssc),
            ("wavelet", &keys::WAVELET, Self::read_wavelet),
        ];
        for (name, keys, read_table) in tables {
            if let Some(value) = table.get(name) {
                let table = value.table(keys)?;
                read_table(&mut read, &table)?;
                table.close("here")?;
            }
        }
        table.close("here")?;
        Ok(read)
    }

    /// These, and those of `outer` where they say nothing.
    pub(crate) fn or(&self, outer: &Self) -> Self {
        Self(outer.0.iter().chain(&self.0).copied().collect())
    }

    /// Puts what is said into the configuration of an engine.
    pub(crate) fn apply(&self, engine: &mut EngineConfig) {
        for setting in &self.0 {
            match *setting {
                Setting::Number(value, set) => set(engine, value),
                Setting::Whole(value, set) => set(engine, value),
                Setting::Flag(value, set) => set(engine, value),
                Setting::Time(value, set) => set(engine, value),
                Setting::Word(value, set) => set(engine, value),
            }
        }
    }

    fn read_cubic(&mut self, table: &Table) -> Result<(), Fault> {
        self.flag(table, "fast_convergence", |engine, flag| engine.parameters.cubic.fast_convergence = flag)
    }

    fn read_olia(&mut self, table: &Table) -> Result<(), Fault> {
        self.word(table, "metric", |engine, word| {
            engine.parameters.olia.metric =
                if word == "l^2/rtt" { PathMetric::LSqOverRtt } else { PathMetric::LOverRttSq };
        })?;
        self.flag(table, "keeps_threshold", |engine, flag| engine.parameters.olia.keeps_threshold = flag)
    }

    fn read_coupled(&mut self, table: &Table) -> Result<(), Fault> {
        self.word(table, "constants", |engine, word| {
            engine.parameters.coupled.constants =
                if word == "scalable" { CoupledConstants::Scalable } else { CoupledConstants::Tcp };
        })
    }

    fn read_ewtcp(&mut self, table: &Table) -> Result<(), Fault> {
        self.number(table, "increase", |engine, increase| engine.parameters.ewtcp.increase = Some(increase))
    }

    fn read_wvegas(&mut self, table: &Table) -> Result<(), Fault> {
        self.number(table, "backlog_total", |engine, packets| engine.parameters.wvegas.backlog_total = packets)?;
        self.number(table, "slow_start_backlog", |engine, packets| {
            engine.parameters.wvegas.slow_start_backlog = packets;
        })?;
        self.number(table, "backlog_least", |engine, packets| engine.parameters.wvegas.backlog_least = packets)?;
        let drain_at =
            |value: &Value| if value.as_text() == Some("never") { Ok(f64::INFINITY) } else { value.number() };
        if let Some(factor) = table.optional("drain_at", drain_at)? {
            let set = |engine: &mut EngineConfig, factor| engine.parameters.wvegas.drain_at = factor;
            self.0.push(Setting::Number(factor.value, set));
        }
        Ok(())
    }

    fn read_daimd(&mut self, table: &Table) -> Result<(), Fault> {
        let plain = EngineConfig::default().parameters.daimd;
        ordered(table, ("rearmed", plain.rearmed), "below", ("full", plain.full))?;
        self.number(table, "full", |engine, part| engine.parameters.daimd.full = part)?;
        self.number(table, "rearmed", |engine, part| engine.parameters.daimd.rearmed = part)?;
        self.number(table, "window_least", |engine, packets| engine.parameters.daimd.window_least = packets)?;
        self.number(table, "hold_rtts", |engine, rtts| engine.parameters.daimd.hold_rtts = rtts)?;
        self.number(table, "backoff", |engine, part| engine.parameters.daimd.backoff = part)?;
        self.word(table, "base", |engine, word| {
            engine.parameters.daimd.base = if word == "10s" { BaseRtt::TenSeconds } else { BaseRtt::Ever };
        })?;
        self.word(table, "queue", |engine, word| {
            engine.parameters.daimd.queue = if word == "seen" { LongestQueue::Seen } else { LongestQueue::Adaptive };
        })
    }

    fn read_coupled_bbr(&mut self, table: &Table) -> Result<(), Fault> {
        self.word(table, "cruise", |engine, word| {
            engine.parameters.cruise = if word == "best_path" { Cruise::BestPath } else { Cruise::OneFlow };
        })
    }

    fn read_concordance(&mut self, table: &Table) -> Result<(), Fault> {
        let plain = EngineConfig::default().detection.concordance;
        ordered(table, ("stay", plain.stay), "at most", ("join", plain.join))?;
        self.time(table, "settle", Duration::ZERO, |engine, time| engine.detection.concordance.settle = time)?;
        self.time(table, "noise", Duration::ZERO, |engine, time| {
            engine.detection.concordance.noise_ms = time.as_secs_f64() * 1e3;
        })?;
        self.number(table, "join", |engine, part| engine.detection.concordance.join = part)?;
        self.number(table, "stay", |engine, part| engine.detection.concordance.stay = part)
    }

    fn read_trendline(&mut self, table: &Table) -> Result<(), Fault> {
        self.number(table, "alpha", |engine, alpha| engine.detection.trendline.alpha = Some(alpha))?;
        self.time(table, "round", PERIOD_LEAST, |engine, round| engine.detection.trendline.round = Some(round))?;
        self.number(table, "error_max", |engine, part| engine.detection.trendline.error_max = Some(part))?;
        self.time(table, "hold", Duration::ZERO, |engine, hold| engine.detection.trendline.hold = Some(hold))
    }

    fn read_ssc(&mut self, table: &Table) -> Result<(), Fault> {
        self.time(table, "interval", PERIOD_LEAST, |engine, time| engine.detection.summary.interval = Some(time))?;
        self.number(table, "loss", |engine, part| engine.detection.summary.loss = Some(part))?;
        self.number(table, "split_oscillation", |engine, by| engine.detection.summary.split_oscillation = Some(by))?;
        self.number(table, "split_variability", |engine, by| engine.detection.summary.split_variability = Some(by))?;
        self.number(table, "split_skewness", |engine, by| engine.detection.summary.split_skewness = Some(by))?;
        self.number(table, "split_loss", |engine, by| engine.detection.summary.split_loss = Some(by))
    }

    fn read_wavelet(&mut self, table: &Table) -> Result<(), Fault> {
        self.time(table, "interval", PERIOD_LEAST, |engine, time| engine.detection.wavelet.interval = time)?;
        self.number(table, "threshold", |engine, by| engine.detection.wavelet.threshold = by)?;
        self.number(table, "correlation_min", |engine, least| engine.detection.wavelet.correlation_min = least)
    }

    fn number(&mut self, table: &Table, key: &'static str, set: fn(&mut EngineConfig, f64)) -> Result<(), Fault> {
        let given = table.optional(key, Value::number)?;
        self.0.extend(given.map(|given| Setting::Number(given.value, set)));
        Ok(())
    }

    fn whole(&mut self, table: &Table, key: &'static str, set: fn(&mut EngineConfig, u32)) -> Result<(), Fault> {
        let given = table.optional(key, Value::whole_u32)?;
        self.0.extend(given.map(|given| Setting::Whole(given.value, set)));
        Ok(())
    }

    fn flag(&mut self, table: &Table, key: &'static str, set: fn(&mut EngineConfig, bool)) -> Result<(), Fault> {
        let given = table.optional(key, Value::flag)?;
        self.0.extend(given.map(|given| Setting::Flag(given.value, set)));
        Ok(())
    }

    fn word(&mut self, table: &Table, key: &'static str, set: fn(&mut EngineConfig, &str)) -> Result<(), Fault> {
        let given = table.optional(key, |value| value.word(key))?;
        self.0.extend(given.map(|given| Setting::Word(given.value, set)));
        Ok(())
    }

    /// A time that is not below `least`.
    fn time(
        &mut self,
        table: &Table,
        key: &'static str,
        least: Duration,
        set: fn(&mut EngineConfig, Duration),
    ) -> Result<(), Fault> {
        let read = |value: &Value| {
            let time = value.time()?;
            if time < least { Err(value.out_of_range(format!("at least {least:?}"))) } else { Ok(time) }
        };
        let given = table.optional(key, read)?;
        self.0.extend(given.map(|given| Setting::Time(given.value, set)));
        Ok(())
    }
}

/// Refuses two numbers of a table that are in the wrong order. What is not given has its usual value.
fn ordered(
    table: &Table,
    (low, usual_low): (&'static str, f64),
    relation: &'static str,
    (high, usual_high): (&'static str, f64),
) -> Result<(), Fault> {
    let given = |key| table.optional(key, Value::number);
    let (lower, upper) = (given(low)?, given(high)?);
    let at = lower.or(upper).map(|given| given.at);
    let (lower, upper) = (lower.map_or(usual_low, |given| given.value), upper.map_or(usual_high, |given| given.value));
    let right = if relation == "below" { lower < upper } else { lower <= upper };
    match at {
        Some(at) if !right => {
            let (value, limit) = (format!("{low} = {lower}"), upper.to_string());
            let key = table.key(low);
            Err(Fault::new(at, key, Problem::Order { value, relation, other: high, limit }))
        }
        _ => Ok(()),
    }
}
