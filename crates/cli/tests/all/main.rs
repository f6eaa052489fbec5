//! The tests of the program as a person runs it, as one program: it is linked once.
//!
//! Apart from it are those between network namespaces (`namespaces`), which measure rates and so run three at a time at most.

#[path = "../common/mod.rs"]
mod common;
mod control;
mod detect;
mod guide;
mod lab;
mod lasting;
mod live;
mod path_terms;
mod paths;
mod perf;
mod proxy;
#[path = "../common/proxy_pages.rs"]
mod proxy_pages;
mod question;
mod sim;
mod strangers;
mod stream;
mod telling;
mod top;
mod transfer;
