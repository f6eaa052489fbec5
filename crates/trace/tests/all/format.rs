//! The format as a whole: every written line keeps the documented schema, what is written is read
//! back, and the reader survives anything.

use fairpath_trace::{Header, Reader, Record, State, Writer, csv};
use proptest::prelude::*;
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../docs/reference/trace.schema.json");

fn any_record() -> impl Strategy<Value = Record> {
    let number = any::<u64>;
    let label = || proptest::option::of("\\PC{0,12}");
    let optional = || proptest::option::of(any::<u64>());
    (
        (number(), label(), label(), any::<u32>(), any::<u32>()),
        (number(), optional(), optional(), number(), optional(), number()),
        proptest::sample::select(State::ALL.to_vec()),
    )
        .prop_map(|((time_ns, run, flow, path, group), window, state)| {
            let (cwnd_bytes, srtt_ns, rtt_min_ns, in_flight_bytes, rate_bps, lost) = window;
            Record {
                time_ns,
                run,
                flow,
                path,
                cwnd_bytes,
                srtt_ns,
                rtt_min_ns,
                in_flight_bytes,
                rate_bps,
                lost,
                group,
                state,
            }
        })
}

fn written(run: Option<&str>, records: &[Record]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &Header::new(run)).unwrap();
    for record in records {
        writer.write(record).unwrap();
    }
    writer.finish().unwrap()
}

/// Whether `value` keeps `schema`. Only the keywords that our schema uses are known; another one
/// fails, so that nothing in the schema goes unchecked.
fn check(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    for (keyword, rule) in schema.as_object().expect("a schema is an object") {
        let kept = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => true,
            "$ref" => {
                let pointer = rule.as_str().unwrap().strip_prefix('#').expect("a local reference");
                return check(root, root.pointer(pointer).expect("a definition"), value);
            }
            "oneOf" => rule.as_array().unwrap().iter().filter(|one| check(root, one, value).is_ok()).count() == 1,
            "type" => match rule {
                Value::Array(types) => types.iter().any(|name| is(value, name)),
                name => is(value, name),
            },
            "const" => value == rule,
            "enum" => rule.as_array().unwrap().contains(value),
            "minimum" => value.is_null() || value.as_u64() >= rule.as_u64(),
            "maximum" => value.is_null() || value.as_u64() <= rule.as_u64(),
            "required" => rule.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some()),
            "properties" => {
                for (name, inner) in rule.as_object().unwrap() {
                    if let Some(field) = value.get(name) {
                        check(root, inner, field).map_err(|error| format!("{name}: {error}"))?;
                    }
                }
                true
            }
            other => return Err(format!("the test does not know the keyword {other}")),
        };
        if !kept {
            return Err(format!("{value} breaks {keyword} {rule}"));
        }
    }
    Ok(())
}

fn is(value: &Value, name: &Value) -> bool {
    match name.as_str().expect("a type has a name") {
        "object" => value.is_object(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        other => panic!("the test does not know the type {other}"),
    }
}

fn plain_record() -> Record {
    Record {
        time_ns: 1,
        run: None,
        flow: None,
        path: 0,
        cwnd_bytes: 12_000,
        srtt_ns: None,
        rtt_min_ns: None,
        in_flight_bytes: 0,
        rate_bps: None,
        lost: 0,
        group: 0,
        state: State::SlowStart,
    }
}

#[test]
fn the_schema_refuses_a_line_with_a_missing_or_a_wrong_field() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let good = serde_json::to_value(plain_record()).unwrap();
    check(&schema, &schema, &good).expect("a good record");
    let fields: Vec<String> = good.as_object().unwrap().keys().cloned().collect();
    assert_eq!(fields.len(), 10, "run and flow are left out where there is none");
    for field in fields {
        let mut without = good.clone();
        without.as_object_mut().unwrap().remove(&field);
        assert!(check(&schema, &schema, &without).is_err(), "{field} is required");
        let mut wrong = good.clone();
        wrong[&field] = Value::from(-1);
        assert!(check(&schema, &schema, &wrong).is_err(), "{field} cannot be -1");
    }
}

#[test]
fn the_schema_names_exactly_the_fields_of_a_record() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let record = Record { run: Some("run".into()), flow: Some("flow".into()), ..plain_record() };
    let record = serde_json::to_value(record).unwrap();
    let names = |value: &Value| {
        let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    assert_eq!(names(&schema["$defs"]["record"]["properties"]), names(&record));
}

/// The first fenced block of `docs/reference/trace.md` is a trace, and its table of columns the real one.
#[test]
fn the_example_in_the_documentation_is_a_trace() {
    let document = include_str!("../../../../docs/reference/trace.md");
    let example = document.split("```").nth(1).expect("a fenced block").trim_start();
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    for line in example.lines() {
        check(&schema, &schema, &serde_json::from_str(line).unwrap()).unwrap();
    }
    let records: Vec<Record> = Reader::new(example.as_bytes()).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(records.len(), 2);
    assert!(document.contains(&csv::COLUMNS.join(",")));
}

proptest! {
    #[test]
    fn every_written_line_keeps_the_schema(records in proptest::collection::vec(any_record(), 0..8)) {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let file = String::from_utf8(written(Some("separate/olia"), &records)).unwrap();
        prop_assert_eq!(file.lines().count(), records.len() + 1);
        for line in file.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            if let Err(error) = check(&schema, &schema, &value) {
                prop_assert!(false, "{line}: {error}");
            }
        }
    }

    #[test]
    fn what_is_written_is_read_back_and_the_same_records_give_the_same_bytes(
        records in proptest::collection::vec(any_record(), 0..8)
    ) {
        let file = written(None, &records);
        prop_assert_eq!(&file, &written(None, &records));
        let reader = Reader::new(file.as_slice()).unwrap();
        prop_assert_eq!(reader.header(), &Header::new(None));
        let read: Vec<Record> = reader.collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(&read, &records);
        let mut table = Vec::new();
        prop_assert_eq!(csv::export(Reader::new(file.as_slice()).unwrap(), &mut table).unwrap(), records.len() as u64);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(reader) = Reader::new(bytes.as_slice()) {
            reader.for_each(drop);
        }
        let mut after_a_header = written(None, &[]);
        after_a_header.extend(&bytes);
        Reader::new(after_a_header.as_slice()).unwrap().for_each(drop);
    }

    /// Bytes that are nearly a trace reach deeper than random ones.
    #[test]
    fn a_damaged_trace_never_panics(
        records in proptest::collection::vec(any_record(), 1..4),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6)
    ) {
        let mut file = written(None, &records);
        for (at, byte) in damage {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Ok(reader) = Reader::new(file.as_slice()) {
            reader.for_each(drop);
        }
    }
}
