//! Plays a scene: its script runs as the first process of mount, PID and network namespaces made for it, so that
//! whatever it starts, names or mounts ends with it, even when it is killed.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use super::recording::Recording;
use super::scenes::Scene;

/// What all scenes share.
const STAGE: &str = include_str!("stage.sh");
/// Seconds after which a scene is ended.
const LIMIT: &str = "40";

/// Runs the scene and leaves its recording in `dir`, which is made anew.
pub fn play(scene: Scene, dir: &Path) -> io::Result<Recording> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    fs::create_dir_all(dir)?;
    let dir = dir.canonicalize()?;
    fs::write(dir.join("README"), format!("{}: {}\n", scene.name, scene.about()))?;
    let script = dir.join("script.sh");
    fs::write(&script, format!("{STAGE}\n{}\nplay\n", scene.script))?;
    let output = Command::new("timeout")
        .args(["--kill-after=2", LIMIT, "unshare", "--mount", "--net", "--pid", "--fork"])
        .args(["--kill-child", "--mount-proc", "bash"])
        .arg(&script)
        .env("out", &dir)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    fs::write(dir.join("stage.log"), said.as_bytes())?;
    let recording = Recording::at(dir);
    if !output.status.success() {
        return Err(io::Error::other(format!(
            "{}: {}: {}",
            scene.name,
            output.status,
            said.trim()
        )));
    }
    if recording.kernel().is_empty() {
        return Err(io::Error::other(format!("{}: no counters: {}", scene.name, said.trim())));
    }
    Ok(recording)
}
