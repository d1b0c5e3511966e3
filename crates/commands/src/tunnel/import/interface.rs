//! `[Interface]` of a configuration of wg-quick.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ::tunnel::PrivateKey;
use host::Network;

use live::config::tunnel::{Table, TunnelSettings, is_domain, is_name};
use live::config::{At, Named};
use zeroize::Zeroizing;

use super::lines::{Entry, Lines, Wrong};

/// Tables that have names everywhere (`/etc/iproute2/rt_tables`).
const TABLES: [(&str, u32); 3] = [("main", 254), ("default", 253), ("local", 255)];

/// The settings without peers, and the text of the private key.
pub(super) fn read(
    lines: &Lines<'_>,
    name: &str,
    folder: &Path,
    lost: &mut Vec<String>,
) -> Result<(TunnelSettings, Zeroizing<String>), Wrong> {
    if !is_name(name) {
        let what = "expected a file that is named after its interface: 1 to 15 letters, digits and \
                    _ = + . -";
        return Err((1, 1, format!("{what}, found \"{}\"", packet::visible::word(name))));
    }
    lost.push(
        "the wire: its messages are not WireGuard's, so every peer has to run tamis".to_owned(),
    );
    let (key, secret) = key(lines)?;
    let key_file = named(folder.join(format!("{name}.key")));
    let mut settings = TunnelSettings {
        file: folder.join(format!("{name}.toml")).display().to_string(),
        ..TunnelSettings::usual(name, (key, key_file))
    };
    for entry in &lines.interface.entries {
        take(&mut settings, *entry, lost)?;
    }
    Ok((settings, secret))
}

fn key(lines: &Lines<'_>) -> Result<(PrivateKey, Zeroizing<String>), Wrong> {
    let part = &lines.interface;
    let Some(entry) = part.entries.iter().rfind(|entry| entry.is("PrivateKey")) else {
        let what =
            "expected PrivateKey = … in this [Interface]; where a PostUp sets it, write it here";
        return Err((part.line, 1, what.to_owned()));
    };
    // What a secret is instead of a key is not shown.
    let what = "PrivateKey: expected a key, 44 characters of base64";
    let key: PrivateKey =
        entry.value.parse().map_err(|_| (entry.line, entry.column, what.to_owned()))?;
    let text = key.text();
    Ok((key, text))
}

fn take(
    settings: &mut TunnelSettings,
    entry: Entry<'_>,
    lost: &mut Vec<String>,
) -> Result<(), Wrong> {
    let hooks = &mut settings.hooks;
    match &*entry.key.to_ascii_lowercase() {
        "privatekey" => {}
        "listenport" => {
            settings.listen = entry.value.parse().map_err(|_| entry.wrong("a port"))?;
        }
        "fwmark" => settings.mark = mark(entry)?,
        "mtu" => {
            settings.mtu = entry.value.parse().map_err(|_| entry.wrong("a number of bytes"))?
        }
        "address" => {
            for part in entry.parts() {
                let address = address(part)?;
                // wg-quick would add it again, and end.
                if settings.addresses.iter().any(|(other, _)| *other == address.0) {
                    return Err(part.wrong("each address once"));
                }
                settings.addresses.push(address);
            }
        }
        "dns" => entry.parts().try_for_each(|part| dns(settings, part))?,
        "table" => settings.table = table(entry, lost),
        "preup" => hook(&mut hooks.pre_up, &settings.name, entry, lost),
        "postup" => hook(&mut hooks.post_up, &settings.name, entry, lost),
        "predown" => hook(&mut hooks.pre_down, &settings.name, entry, lost),
        "postdown" => hook(&mut hooks.post_down, &settings.name, entry, lost),
        "saveconfig" if entry.value.eq_ignore_ascii_case("true") => lost.push(format!(
            "line {}: SaveConfig: peers that are added while it is up are gone when it is down",
            entry.line
        )),
        "saveconfig" => {}
        _ => lost.push(unknown(entry)),
    }
    Ok(())
}

/// A file of the configuration that is to be.
pub(super) fn named(path: PathBuf) -> Named {
    Named { path, at: At { line: 1, column: 1 } }
}

/// A key that wg-quick may know, and a tunnel here does not.
pub(super) fn unknown(entry: Entry<'_>) -> String {
    format!("line {}: {}: a tunnel here has no such thing", entry.line, entry.key)
}

fn mark(entry: Entry<'_>) -> Result<Option<u32>, Wrong> {
    let number = match (entry.value, entry.value.strip_prefix("0x")) {
        ("off", _) => Some(0),
        (_, Some(digits)) => u32::from_str_radix(digits, 16).ok(),
        (digits, None) => digits.parse().ok(),
    };
    let number = number.ok_or_else(|| entry.wrong("a mark, or off"))?;
    Ok(Some(number).filter(|number| *number != 0))
}

fn address(entry: Entry<'_>) -> Result<(IpAddr, u8), Wrong> {
    let address = entry.value.split('/').next().and_then(|address| address.parse().ok());
    match (Network::parse(entry.value), address) {
        (Some(network), Some(address)) => Ok((address, network.bits)),
        _ => Err(entry.wrong("an address such as 10.77.0.1/24")),
    }
}

/// A server, or a domain that names are searched in.
fn dns(settings: &mut TunnelSettings, entry: Entry<'_>) -> Result<(), Wrong> {
    match entry.value.parse() {
        Ok(server) => settings.dns.push(server),
        Err(_) if is_domain(entry.value) => settings.search.push(entry.value.to_owned()),
        Err(_) => return Err(entry.wrong("the address of a server, or a domain")),
    }
    Ok(())
}

fn table(entry: Entry<'_>, lost: &mut Vec<String>) -> Table {
    let known = TABLES.iter().find(|(name, _)| *name == entry.value).map(|(_, number)| *number);
    match (entry.value, known.or(entry.value.parse().ok()).filter(|number| *number != 0)) {
        ("auto", _) => Table::Auto,
        ("off", _) => Table::Off,
        (_, Some(number)) => Table::Number(number),
        (name, None) => {
            lost.push(format!(
                "line {}: Table = {name}: tables have numbers here; no routes are made until \
                 table = NUMBER stands in the place of \"off\"",
                entry.line
            ));
            Table::Off
        }
    }
}

/// Adds a command with the tunnel's name for `%i`, unless it calls wg(8), which knows nothing of this tunnel.
fn hook(commands: &mut Vec<String>, name: &str, entry: Entry<'_>, lost: &mut Vec<String>) {
    let is_end = |c: char| c.is_whitespace() || ";&|()`$\"'".contains(c);
    let calls_wg = entry.value.split(is_end).any(|word| matches!(word, "wg" | "wg-quick" | "awg"));
    match (calls_wg, entry.value) {
        (_, "") => {}
        (true, command) => lost.push(format!(
            "line {}: {} = {command}: wg knows nothing of this tunnel (tamis tunnel peers does)",
            entry.line, entry.key
        )),
        (false, command) => commands.push(command.replace("%i", name)),
    }
}
