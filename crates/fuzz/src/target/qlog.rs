//! qlog: one document, or a line for each event.

use serde_json::Value;

use super::{Seed, Target, rtt};

pub(crate) static TARGET: Target = Target {
    name: "qlog",
    about: "qlog: documents, and sequences of events",
    check,
    seeds,
    words: &[
        "{\"qlog_version\":\"0.3\",\"traces\":[",
        "{\"qlog_format\":\"JSON-SEQ\",\"trace\":{}}\n",
        "\u{1e}{",
        "\"common_fields\":{",
        "\"time_format\":\"delta\"",
        "\"reference_time\":",
        "\"epoch\":\"1970-01-01T00:00:02Z\"",
        "\"configuration\":{\"time_units\":\"us\"}",
        "\"event_fields\":[",
        "\"events\":[",
        "\"name\":\"metrics_updated\"",
        "\"latest_rtt\":",
        "\"smoothed_rtt\":",
        "\"path_id\":",
        "1e308",
    ],
    also: &[],
};

fn check(input: &[u8]) {
    let _ = rtt::read(input);
    if let Ok(Value::Object(document)) = serde_json::from_slice(input) {
        a_sequence_says_the_same(&Value::Object(document));
    }
}

/// A document of one trace says the same as the sequence of its events.
fn a_sequence_says_the_same(document: &Value) {
    let Some([trace]) = document["traces"].as_array().map(Vec::as_slice) else { return };
    let (Some(fields), Some(events)) = (trace.as_object(), trace["events"].as_array()) else { return };
    // In a sequence this begins another trace.
    if events.iter().any(|event| event.get("qlog_version").or(event.get("qlog_format")).is_some()) {
        return;
    }
    let mut about = fields.clone();
    about.remove("events");
    let head = serde_json::json!({"qlog_format": "JSON-SEQ", "qlog_version": "0.3", "trace": about});
    let records = core::iter::once(&head).chain(events).map(|record| format!("\u{1e}{record}\n"));
    let sequence = rtt::said(rtt::read(records.collect::<String>().as_bytes()));
    let document = serde_json::json!({"qlog_version": "0.3", "traces": [trace]}).to_string();
    // Events that wait for the end of a document are limited in number; those of a sequence are not.
    match (rtt::said(rtt::read(document.as_bytes())), sequence) {
        (Ok(document), Ok(sequence)) => assert_eq!(document, sequence),
        (Ok(document), Err(sequence)) => panic!("a document says {document:?}, its sequence: {sequence}"),
        (Err(document), Ok(_)) => assert!(document.contains("in one document"), "{document}"),
        (Err(_), Err(_)) => {}
    }
}

fn seeds() -> Vec<Seed> {
    let document = r#"{"qlog_version":"0.3","traces":[{"common_fields":{"reference_time":1000,"time_format":"relative"},
        "events":[{"time":1.5,"name":"transport:packet_sent","data":{"path_id":[1]}},
                  {"time":2.5,"name":"recovery:metrics_updated","data":{"latest_rtt":20.5,"smoothed_rtt":30}},
                  {"time":3,"name":"recovery:metrics_updated","data":{"congestion_window":1}}]}]}"#;
    let sequence = "\u{1e}{\"qlog_format\":\"JSON-SEQ\",\"qlog_version\":\"0.4\",\"trace\":{\"common_fields\":{\"time_format\":\"relative_to_epoch\",\"reference_time\":{\"clock_type\":\"system\",\"epoch\":\"1970-01-01T00:00:02Z\"}}}}\n\
        \u{1e}{\"time\":1,\"name\":\"quic:recovery_metrics_updated\",\"data\":{\"path_id\":0,\"smoothed_rtt\":20}}\n\
        \u{1e}{\"time\":2,\"name\":\"quic:recovery_metrics_updated\",\"path\":\"lte\",\"data\":{\"latest_rtt\":30}}\n\
        \u{1e}{\"time\":3,\"na\n";
    let rows = r#"{"qlog_version":"draft-01","traces":[{"configuration":{"time_units":"us"},
        "event_fields":["relative_time","category","event_type","data"],
        "events":[["2000","recovery","metrics_updated",{"latest_rtt":"20000"}]]}]}"#;
    let delta = r#"{"qlog_version":"0.3","traces":[{"events":[{"time":1,"name":"a","data":{}},{"time":2,"name":"metrics_updated","data":{"latest_rtt":5}}],"common_fields":{"time_format":"delta"}},
        {"events":[{"time":3,"name":"metrics_updated","data":{"path_id":"7","latest_rtt":6}}]}],"summary":[[]]}"#;
    vec![
        Seed::new("document", document),
        Seed::new("sequence", sequence),
        Seed::new("rows", rows),
        Seed::new("two_traces", delta),
    ]
}
