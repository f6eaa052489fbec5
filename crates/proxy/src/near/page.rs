//! The pages of the port itself: whether it works, and the proxy's settings for browsers.

use std::net::SocketAddr;

use fairpath::{Amount, Connection};

use super::http;
use super::link::LinkState;

/// The answer to a request for a page.
pub(super) fn answer(path: &str, port: SocketAddr, state: &LinkState) -> Vec<u8> {
    match path.split('?').next().unwrap_or_default() {
        "/" => http::response((200, "OK"), "text/html", &page(port, state), ""),
        "/proxy.pac" => http::response((200, "OK"), "application/x-ns-proxy-autoconfig", &settings(port), ""),
        _ => http::response((404, "Not Found"), "text/plain", "this port has / and /proxy.pac", ""),
    }
}

/// Settings that send everything through the port, but for hosts that the far end cannot reach.
fn settings(port: SocketAddr) -> String {
    format!(
        "function FindProxyForURL(url, host) {{\n  \
         if (isPlainHostName(host) || host === \"localhost\" || shExpMatch(host, \"*.local\") ||\n      \
         /^(127|10|192\\.168|172\\.(1[6-9]|2[0-9]|3[01])|169\\.254)\\./.test(host) || host === \"[::1]\")\n    \
         return \"DIRECT\";\n  return \"SOCKS5 {port}; SOCKS {port}; PROXY {port}\";\n}}"
    )
}

fn page(port: SocketAddr, state: &LinkState) -> String {
    let (verdict, more) = match state {
        LinkState::Up(connection) => ("It works: the far end is connected.".to_owned(), paths(connection)),
        LinkState::Connecting(why) => {
            let why = why.as_deref().map(|why| format!("<p>{}</p>", escaped(why))).unwrap_or_default();
            ("The far end is not connected yet.".to_owned(), why)
        }
        LinkState::Closed => ("This end is ending.".to_owned(), String::new()),
    };
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"2\">\
         <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\
         <title>Fairpath</title><style>body{{font:1rem sans-serif;margin:2rem;max-width:50rem}}td,th{{padding:.2rem .8rem;text-align:left}}\
         </style></head><body><h1>{verdict}</h1>{more}\
         <p>SOCKS5 and HTTP proxy: {port}. For browsers: <a href=\"/proxy.pac\">http://{port}/proxy.pac</a></p></body></html>"
    )
}

fn paths(connection: &Connection) -> String {
    let row = |path: fairpath::Path| {
        let rtt = path.rtt.map(|rtt| format!("{} ms", rtt.as_millis())).unwrap_or_default();
        format!(
            "<tr><td>{}</td><td>{}</td><td>{rtt}</td><td>{}</td><td>{}</td></tr>",
            escaped(&path.name),
            path.state,
            path.send_rate,
            path.receive_rate
        )
    };
    let paths = connection.paths();
    let sum = |of: fn(&fairpath::Path) -> Amount| paths.iter().map(of).sum::<Amount>();
    let total = format!("<p>{} sent, {} received.</p>", sum(|path| path.acked), sum(|path| path.received));
    let rows: String = paths.into_iter().map(row).collect();
    format!(
        "<table><tr><th>path</th><th>state</th><th>round trip</th><th>up</th><th>down</th></tr>{rows}</table>{total}"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_say_where_the_port_is_and_no_peer_writes_into_them() {
        let port = "127.0.0.1:1080".parse().unwrap();
        let state = LinkState::Connecting(Some("<script>".to_owned()));
        let text = |path| String::from_utf8(answer(path, port, &state)).unwrap();
        assert!(text("/").contains("not connected yet") && text("/").contains("&lt;script&gt;"));
        assert!(text("/proxy.pac?x").contains("SOCKS5 127.0.0.1:1080"));
        assert!(text("/else").starts_with("HTTP/1.1 404 "));
    }
}
