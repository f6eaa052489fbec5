//! The format of scenario files, for programs and for people: a JSON schema, and the tables of the
//! reference. Both come from the keys that the reader knows.

use serde_json::{Map, Value, json};

use crate::keys::{self, Key, Keys, Shape};
use crate::units;

/// The JSON schema of scenario files, for editors. It is `docs/reference/scenario.schema.json`.
pub fn json() -> String {
    let mut definitions = Map::new();
    for (name, text, units) in [
        ("rate", "A rate, like \"30Mbit/s\".", units::rate_units()),
        ("time", "A time, like \"20ms\".", units::time_units()),
        ("size", "A size, like \"70kB\".", units::size_units()),
    ] {
        definitions.insert(name.to_owned(), quantity(text, &units, &[]));
    }
    let room = "The room of a queue, like \"100ms\", \"64kB\", \"300 packets\", \"1 bdp\" or \"unlimited\".";
    definitions.insert("room".to_owned(), quantity(room, &units::room_units(), &["unlimited"]));
    let share = json!({
        "description": "A share, like 0.01, \"1%\" or \"1/3\".",
        "anyOf": [
            { "type": "number", "minimum": 0, "maximum": 1 },
            { "type": "string", "pattern": r"^\s*[0-9.]+\s*(%|/\s*[0-9.]+)?\s*$" },
            definition("with_parameters"),
        ],
    });
    definitions.insert("share".to_owned(), share);
    definitions.extend(parameters());
    for keys in tables() {
        let other = definitions.insert(keys.name.to_owned(), table(keys));
        debug_assert!(other.is_none(), "two definitions are called {}", keys.name);
    }
    let mut schema = definitions.remove(keys::FILE.name).unwrap_or_default();
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("A Fairpath scenario");
    schema["$defs"] = Value::Object(definitions);
    format!("{schema:#}\n")
}

/// The tables of the reference in `docs/reference/scenario.md`, in Markdown: the name of each, and its keys.
pub fn reference() -> Vec<(&'static str, String)> {
    tables().into_iter().map(|keys| (keys.name, markdown(keys))).collect()
}

/// Every table of a scenario file, outer ones first.
fn tables() -> Vec<&'static Keys> {
    fn inside(shape: &'static Shape, all: &mut Vec<&'static Keys>) {
        match shape {
            Shape::Table(keys) => add(keys, all),
            Shape::List(shape) => inside(shape, all),
            Shape::Either(shapes) => shapes.iter().for_each(|shape| inside(shape, all)),
            _ => {}
        }
    }
    fn add(keys: &'static Keys, all: &mut Vec<&'static Keys>) {
        if all.iter().all(|known| known.name != keys.name) {
            all.push(keys);
            keys.iter().for_each(|key| inside(&key.shape, all));
        }
    }
    let mut all = Vec::new();
    add(&keys::FILE, &mut all);
    all
}

/// The parameters of a sweep, and their values.
fn parameters() -> [(String, Value); 4] {
    let name = "[A-Za-z][A-Za-z0-9_-]*";
    let parameter = json!({
        "description": "A parameter of the sweep, like \"${load}\": its value stands here.",
        "type": "string",
        "pattern": format!(r"^\$\{{{name}\}}$"),
    });
    let with_parameters = json!({
        "description": "A text with parameters of the sweep, like \"${load}Mbit/s\".",
        "type": "string",
        "pattern": format!(r"\$\{{{name}\}}"),
    });
    let value = json!({
        "description": "A value of a parameter.",
        "anyOf": [{ "type": "string" }, { "type": "number" }, { "type": "boolean" }],
    });
    let sweep = json!({
        "description": "Parameters with their values.",
        "type": "object",
        "propertyNames": { "pattern": format!("^{name}$") },
        "additionalProperties": {
            "anyOf": [definition("value"), { "type": "array", "minItems": 1, "items": definition("value") }],
        },
    });
    [("parameter", parameter), ("with_parameters", with_parameters), ("value", value), ("sweep", sweep)]
        .map(|(name, definition)| (name.to_owned(), definition))
}

fn definition(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn quantity(description: &str, units: &[&str], words: &[&str]) -> Value {
    let words: String = words.iter().map(|word| format!("|{word}")).collect();
    let pattern = format!(r"^\s*([0-9]+(\.[0-9]*)?\s*({}){words})\s*$", units.join("|"));
    json!({
        "description": description,
        "anyOf": [{ "type": "string", "pattern": pattern }, definition("with_parameters")],
    })
}

fn table(keys: &Keys) -> Value {
    let property = |key: &Key| {
        let mut described = shape(&key.shape);
        let without = match key.without {
            None | Some("") => String::new(),
            Some(without) => format!(" Without it: {without}."),
        };
        let text = format!("{}.{without} Example: {}", capitalised(key.meaning), key.example);
        described["description"] = json!(text.replace('`', ""));
        (key.name.to_owned(), described)
    };
    let needed: Vec<&str> = keys.iter().filter(|key| key.without.is_none()).map(|key| key.name).collect();
    let properties: Map<String, Value> = keys.iter().map(property).collect();
    let mut table = json!({ "type": "object", "additionalProperties": false, "properties": properties });
    if !needed.is_empty() {
        table["required"] = json!(needed);
    }
    if keys.one_of {
        table["minProperties"] = json!(1);
        table["maxProperties"] = json!(1);
    }
    table
}

fn shape(of: &Shape) -> Value {
    let or = |plain: Value, name: &str| json!({ "anyOf": [plain, definition(name)] });
    let number = |plain: Value| or(plain, "parameter");
    match of {
        Shape::Text => json!({ "type": "string", "minLength": 1 }),
        Shape::Rate => definition("rate"),
        Shape::Time => definition("time"),
        Shape::Size => definition("size"),
        Shape::Share => definition("share"),
        Shape::Room => definition("room"),
        Shape::Whole(least, u64::MAX) => number(json!({ "type": "integer", "minimum": least })),
        Shape::Whole(least, most) => number(json!({ "type": "integer", "minimum": least, "maximum": most })),
        Shape::Number(least, most) => number(json!({ "type": "number", "minimum": least, "maximum": most })),
        Shape::Above(below, most) => number(json!({ "type": "number", "exclusiveMinimum": below, "maximum": most })),
        Shape::Flag => or(json!({ "type": "boolean" }), "parameter"),
        Shape::Words(words) => or(json!({ "enum": words }), "with_parameters"),
        Shape::Table(keys) => definition(keys.name),
        Shape::List(inner) => json!({ "type": "array", "items": shape(inner) }),
        Shape::Either(shapes) => json!({ "anyOf": shapes.iter().map(shape).collect::<Vec<Value>>() }),
        Shape::Parameters => definition("sweep"),
    }
}

fn markdown(keys: &Keys) -> String {
    let place = format!("<a id=\"{}\"></a>\n\n", anchor(keys.name));
    if let Some(other) = keys.like {
        let names: Vec<String> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
        return format!("{place}Keys: {}, as in [`{}`](#{}).\n", names.join(", "), other, anchor(other));
    }
    let columns: &[&str] = if keys.one_of {
        &["key", "value", "meaning", "example"]
    } else {
        &["key", "value", "without it", "meaning", "example"]
    };
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
    let mut text = place + &line(&head);
    text += &format!("|{}\n", "---|".repeat(columns.len()));
    for key in keys.iter() {
        let mut cells = vec![format!("`{}`", key.name), in_words(&key.shape)];
        if !keys.one_of {
            cells.push(key.without.unwrap_or("must be given").to_owned());
        }
        cells.push(key.meaning.to_owned());
        cells.push(format!("`{} = {}`", key.name, key.example));
        text += &line(&cells);
    }
    text
}

/// The name of the place of a table in the reference.
fn anchor(name: &str) -> String {
    format!("keys-{}", name.replace('.', "-"))
}

fn in_words(shape: &Shape) -> String {
    match shape {
        Shape::Text => "text".to_owned(),
        Shape::Rate => "rate".to_owned(),
        Shape::Time => "time".to_owned(),
        Shape::Size => "size".to_owned(),
        Shape::Share => "share".to_owned(),
        Shape::Room => "room".to_owned(),
        Shape::Whole(least, u64::MAX) => format!("whole number from {least}"),
        Shape::Whole(least, most) => format!("whole number, {least} to {most}"),
        Shape::Number(least, most) => format!("number, {least} to {most}"),
        Shape::Above(below, most) => format!("number above {below}, up to {most}"),
        Shape::Flag => "`true` or `false`".to_owned(),
        Shape::Words(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
            words.join(", ")
        }
        Shape::Table(keys) => format!("table [`{}`](#{})", keys.name, anchor(keys.name)),
        Shape::List(inner) => match inner {
            Shape::List(inner) => format!("list of lists of {}", in_words(inner)),
            Shape::Table(_) => in_words(inner).replace("table", "list of tables"),
            _ => format!("list of {}", in_words(inner)),
        },
        Shape::Either(shapes) => shapes.iter().map(in_words).collect::<Vec<String>>().join(" or "),
        Shape::Parameters => "table of [parameters](#sweeps)".to_owned(),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
