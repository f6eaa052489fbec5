//! Names are any text that can be printed.

use fairpath_scenario::ScenarioFile;

const FILE: &str = r#"
duration = "10s"

[[link]]
name = "2.4 GHz — дом"
from = "Телефон №1"
to = "Küche/Bad"
rate = "10Mbit/s"
delay = "1ms"

[[link]]
from = "Küche/Bad"
to = "サーバ"
rate = "20Mbit/s"

[[flow]]
name = "загрузка \"α\""
count = 2
from = "Телефон №1"
to = "サーバ"
via = ["2.4 GHz — дом"]

[[change]]
at = "1s"
link = "2.4 GHz — дом.back"
up = false
"#;

#[test]
fn names_are_taken_as_they_are_written() {
    let scenario = ScenarioFile::parse(FILE, "имя.toml").unwrap().expand(None).unwrap();
    let names: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["2.4 GHz — дом", "2.4 GHz — дом.back", "Küche/Bad-サーバ", "Küche/Bad-サーバ.back"]);
    assert_eq!(scenario.flows[1].name, "загрузка \"α\".1");
    assert_eq!(scenario.flows[1].class, "загрузка \"α\"");
    assert_eq!(scenario.changes[0].link.0, 1);
    assert_eq!(scenario.title, "имя.toml");
}

#[test]
fn columns_count_characters_and_similar_names_are_found() {
    let text = FILE.replace("to = \"サーバ\"\nvia", "to = \"サーパ\"\nvia");
    let error = ScenarioFile::parse(&text, "имя.toml").unwrap().expand(None).unwrap_err();
    // Three characters, one of them wrong.
    assert_eq!(error.to_string(), "имя.toml:20:6: flow.to: there is no node \"サーパ\" (is \"サーバ\" meant?)");
    let text = FILE.replace("from = \"Küche/Bad\"", "from = \"Küche/Bad\", # ü");
    let error = ScenarioFile::parse(&text, "имя.toml").unwrap_err();
    assert_eq!((error.line, error.column), (12, 19));
}

#[test]
fn names_that_cannot_be_printed_are_refused() {
    for bad in ["", "   ", "a\\nb", "a\\u0000b", "\\u0007"] {
        let text = FILE.replacen("name = \"2.4 GHz — дом\"", &format!("name = \"{bad}\""), 1);
        let error = ScenarioFile::parse(&text, "x.toml").unwrap_err().to_string();
        assert!(error.starts_with("x.toml:5:8: link.name: "), "{error}");
        assert!(error.contains("is no name"), "{error}");
    }
}
