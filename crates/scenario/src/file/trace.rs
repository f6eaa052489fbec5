//! Files that a scenario file names: recorded rates.

use fairpath_net::{MahimahiTrace, Rate, RateTable, RateTableEnd};

use super::reader::{Fault, Table, Value};
use crate::error::Problem;
use crate::keys;

/// Gives the text of the file of a name, or says why it cannot.
pub(crate) type Files<'f> = dyn Fn(&str) -> Result<String, String> + 'f;

pub(crate) fn read_trace(value: &Value, files: &Files) -> Result<Rate, Fault> {
    if !value.is_table() {
        let path = value.text("the name of a file, like \"lte.down\"")?;
        return if path.ends_with(".csv") {
            table_of_rates(value, RateTableEnd::Hold, files)
        } else {
            mahimahi(value, files)
        };
    }
    let table = value.table(&keys::TRACE)?;
    table.exclude("csv", "mahimahi")?;
    if let Some(file) = table.get("mahimahi") {
        table.close("for a Mahimahi trace, which repeats by itself")?;
        mahimahi(&file, files)
    } else {
        let file = table.get("csv").ok_or_else(|| table.missing("csv"))?;
        let end = read_end(&table)?;
        table.close("here")?;
        table_of_rates(&file, end, files)
    }
}

/// How a table of rates goes on after its last entry.
pub(crate) fn read_end(table: &Table) -> Result<RateTableEnd, Fault> {
    let repeat = table.optional("repeat", Value::positive_time)?;
    Ok(repeat.map_or(RateTableEnd::Hold, |period| RateTableEnd::Repeat(period.value)))
}

fn mahimahi(value: &Value, files: &Files) -> Result<Rate, Fault> {
    let (path, text) = read(value, files)?;
    MahimahiTrace::parse(&text).map(Into::into).map_err(|error| senseless(value, path, error.to_string()))
}

fn table_of_rates(value: &Value, end: RateTableEnd, files: &Files) -> Result<Rate, Fault> {
    let (path, text) = read(value, files)?;
    RateTable::parse(&text, end).map(Into::into).map_err(|error| senseless(value, path, error.to_string()))
}

fn read<'t>(value: &Value<'t>, files: &Files) -> Result<(&'t str, String), Fault> {
    let path = value.text("the name of a file, like \"lte.down\"")?;
    let text = files(path).map_err(|message| senseless(value, path, message))?;
    Ok((path, text))
}

fn senseless(value: &Value, path: &str, message: String) -> Fault {
    value.fault(Problem::File { path: path.to_owned(), message })
}
