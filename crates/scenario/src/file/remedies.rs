//! The remedies of a flow, as a scenario file describes them.

use super::reader::{Fault, Value};
use crate::keys;
use crate::model::Remedies;

/// The remedies that are said; the rest is left to what stands further out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RemedyValues {
    /// Inside, `None` is a clamp that is said to be off.
    bloat_clamp: Option<Option<f64>>,
    probe: Option<bool>,
    penalty: Option<bool>,
}

impl RemedyValues {
    pub(crate) fn read(value: &Value) -> Result<Self, Fault> {
        let table = value.table(&keys::REMEDIES)?;
        let clamp = |value: &Value| if value.as_text() == Some("off") { Ok(None) } else { value.number().map(Some) };
        let flag = |name| Ok::<_, Fault>(table.optional(name, Value::flag)?.map(|flag| flag.value));
        let values = Self {
            bloat_clamp: table.optional("bloat_clamp", clamp)?.map(|clamp| clamp.value),
            probe: flag("probe")?,
            penalty: flag("penalty")?,
        };
        table.close("here")?;
        Ok(values)
    }

    pub(crate) fn or(self, outer: Self) -> Self {
        Self {
            bloat_clamp: self.bloat_clamp.or(outer.bloat_clamp),
            probe: self.probe.or(outer.probe),
            penalty: self.penalty.or(outer.penalty),
        }
    }

    pub(crate) fn build(self) -> Remedies {
        Remedies {
            bloat_clamp: self.bloat_clamp.flatten(),
            probe: self.probe.unwrap_or_default(),
            penalty: self.penalty.unwrap_or_default(),
        }
    }
}
