//! `[metrics]` and `[log]`: how a run is looked at from outside.

use std::net::{Ipv4Addr, SocketAddr};

use toml::de::{DeTable, DeValue};

use super::{LogFormat, MetricsSettings};
use crate::keys::{Section, Value, Wrong, found, string};

/// The port that is listened at unless another one is given.
const PORT: u16 = 9469;

/// Where metrics are to be had, if anywhere.
pub(super) fn metrics(top: &DeTable<'_>) -> Result<Option<MetricsSettings>, Wrong> {
    let Some(value) = top.get("metrics") else { return Ok(None) };
    let section = Section::new("[metrics]", value, &["listen", "rules"], &[])?;
    let listen = match section.get("listen") {
        None => SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
        Some(value) => listen(value)?,
    };
    let rules = match section.get("rules").map(|value| (value.get_ref(), value)) {
        None => false,
        Some((DeValue::Boolean(rules), _)) => *rules,
        Some((_, value)) => return Err(found(value, "true or false")),
    };
    Ok(Some(MetricsSettings { listen, rules }))
}

/// An address that is listened at, and its port.
pub(super) fn listen(value: &Value<'_>) -> Result<SocketAddr, Wrong> {
    string(value)?.parse().map_err(|_| {
        let what = "expected an address with a port, such as \"127.0.0.1:9469\"";
        (value.span(), format!("{what}, found \"{}\"", string(value).unwrap_or_default()))
    })
}

/// How what happens is told.
pub(super) fn log(top: &DeTable<'_>) -> Result<LogFormat, Wrong> {
    let Some(value) = top.get("log") else { return Ok(LogFormat::default()) };
    let section = Section::new("[log]", value, &["format"], &[])?;
    let words = [("text", LogFormat::Text), ("json", LogFormat::Json)];
    Ok(section.choice("format", &words, &[])?.unwrap_or_default())
}
