//! `[metrics]` and `[log]`: how a run is observed from outside.

use std::net::{Ipv4Addr, SocketAddr};

use toml::de::{DeTable, DeValue};

use super::{LogFormat, MetricsSettings};
use dataplane::keys::{Section, Value, Wrong, found, string};

/// The port of metrics unless another one is given.
const PORT: u16 = 9469;

/// Where metrics are served, if anywhere.
pub(super) fn metrics(top: &DeTable<'_>) -> Result<Option<MetricsSettings>, Wrong> {
    let Some(value) = top.get("metrics") else { return Ok(None) };
    let section = Section::new("[metrics]", value, &["listen", "rules", "names"], &[])?;
    let listen = match section.get("listen") {
        None => SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
        Some(value) => listen(value)?,
    };
    let rules = match section.get("rules").map(|value| (value.get_ref(), value)) {
        None => false,
        Some((DeValue::Boolean(rules), _)) => *rules,
        Some((_, value)) => return Err(found(value, "true or false")),
    };
    let names = section.get("names").map(names).transpose()?.unwrap_or_default();
    Ok(Some(MetricsSettings { listen, rules, names }))
}

/// Names that clients may give in the field Host.
pub(super) fn names(value: &Value<'_>) -> Result<Vec<String>, Wrong> {
    match value.get_ref() {
        DeValue::Array(names) => names.iter().map(|name| string(name).map(str::to_owned)).collect(),
        _ => Err(found(value, "a list of strings")),
    }
}

/// An address to listen on, and its port.
pub(super) fn listen(value: &Value<'_>) -> Result<SocketAddr, Wrong> {
    string(value)?.parse().map_err(|_| {
        let what = "expected an address with a port, such as \"127.0.0.1:9469\"";
        (value.span(), format!("{what}, found \"{}\"", string(value).unwrap_or_default()))
    })
}

/// The format of the log.
pub(super) fn log(top: &DeTable<'_>) -> Result<LogFormat, Wrong> {
    let Some(value) = top.get("log") else { return Ok(LogFormat::default()) };
    let section = Section::new("[log]", value, &["format"], &[])?;
    let words = [("text", LogFormat::Text), ("json", LogFormat::Json)];
    Ok(section.choice("format", &words, &[])?.unwrap_or_default())
}
