//! Checks that no file of a configuration is both read and written, or written twice, under whatever name.

use std::path::{Path, PathBuf};

use pktio::file::{FileId, Files};

use crate::config::tunnel::TunnelSettings;
use crate::config::{At, ConfigError, Kind, Named, Settings};
use crate::rules::journal;
use crate::workers::restart;

/// The files that are written, each with the key that names it.
fn written(settings: &Settings) -> impl Iterator<Item = (&'static str, At, PathBuf)> {
    let outs = settings.ports.iter().filter_map(|port| match &port.kind {
        Kind::Pcap { out: Some(out), .. } => Some(("out", out.at, out.path.clone())),
        _ => None,
    });
    // These are created new: a link of their name is replaced, and not the file that it leads to.
    let is_itself = |path: &PathBuf| !path.is_symlink();
    let connections = settings.restart.file.iter().flat_map(move |Named { path, at }| {
        let both = [path.clone(), restart::beside(path)].into_iter().filter(is_itself);
        both.map(|path| ("[conntrack] file", *at, path))
    });
    let socket = settings.socket.iter().map(|Named { path, at }| ("socket", *at, path.clone()));
    let journal = settings.journal.iter().flat_map(move |Named { path, at }| {
        let both = journal::files(path).into_iter().filter(is_itself);
        both.map(|path| ("journal", *at, path))
    });
    outs.chain(connections).chain(socket).chain(journal)
}

/// The files that a tunnel's configuration names, as far as it can be read: its errors are reported where it is opened.
fn of_tunnel(file: &Path) -> Vec<PathBuf> {
    let Ok(tunnel) = TunnelSettings::read(file) else { return Vec::new() };
    let rules = tunnel.rules.into_iter().map(|rules| rules.file);
    let keys = tunnel.peers.into_iter().filter_map(|peer| peer.preshared_file);
    let all = rules.chain(keys).chain(tunnel.ipset).chain(tunnel.bans).chain([tunnel.key_file]);
    all.map(|named| named.path).collect()
}

/// Refuses a file that is written if it is another file of this configuration, or a file that the command line names.
pub(crate) fn check(settings: &Settings, more: &[String]) -> Result<(), ConfigError> {
    let mut files = Files::default();
    for name in [&settings.file].into_iter().chain(more) {
        files.reads(FileId::of(Path::new(name)), name);
    }
    let tunnels = settings.ports.iter().filter_map(|port| match &port.kind {
        Kind::Tunnel { file } => Some(of_tunnel(&file.path)),
        _ => None,
    });
    for path in tunnels.flatten() {
        files.reads(FileId::of(&path), &path.display().to_string());
    }
    let java = settings.java().into_iter().flat_map(|java| java.jar.iter().chain(&java.jvm));
    let of_ports = settings.ports.iter().filter_map(|port| match &port.kind {
        Kind::Pcap { file: Some(file), .. } | Kind::Tunnel { file } => Some(file),
        _ => None,
    });
    for Named { path, .. } in settings.read_again().chain(of_ports).chain(java) {
        files.reads(FileId::of(path), &path.display().to_string());
    }
    for (what, at, path) in written(settings) {
        let name = format!("{what} = \"{}\"", path.display());
        let taken = files.writes(FileId::of(&path), what, &name);
        taken.map_err(|what| settings.refuse(at, what))?;
    }
    Ok(())
}
