//! Plays a scene: its script runs as the first process of mount, PID and network namespaces made for it, so that
//! whatever it starts, names or mounts ends with it, even when it is killed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::recording::{Act, Recording};
use super::scenes::Scene;

/// What all scenes share.
const STAGE: &str = include_str!("stage.sh");
/// What a scene is alone in; all of it ends with its first process.
const NAMESPACES: [&str; 6] =
    ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// Seconds after which a scene is ended.
const LIMIT: &str = "120";

/// Why no scene can be played here, if so.
#[must_use]
pub fn lacking() -> Option<String> {
    let output = Command::new("unshare").args(NAMESPACES).arg("true").output();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    }
}

/// How much is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Whole frames, downloads of megabytes.
    Whole,
    /// Frames cut to 160 bytes, downloads of some kilobytes: what can be kept as a fixture.
    Small,
}

/// Runs the scene and leaves its recording in `dir`, which is made anew.
pub fn play(scene: Scene, dir: &Path, size: Size) -> io::Result<Recording> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    fs::create_dir_all(dir)?;
    let dir = dir.canonicalize()?;
    fs::write(dir.join("README"), format!("{}: {}\n", scene.name, scene.about()))?;
    let script = script(&dir, scene.script, "play")?;
    let small = [("snap", "160"), ("big", "20000")];
    let output = command(LIMIT, &script)
        .env("out", &dir)
        .envs(small.into_iter().filter(|_| size == Size::Small))
        .output()?;
    let message = String::from_utf8_lossy(&output.stderr);
    fs::write(dir.join("stage.log"), message.as_bytes())?;
    let recording = Recording::at(dir);
    if !output.status.success() {
        return Err(io::Error::other(format!(
            "{}: {}: {}",
            scene.name,
            output.status,
            message.trim()
        )));
    }
    if recording.kernel(Act::WHOLE).is_empty() {
        return Err(io::Error::other(format!("{}: no counters: {}", scene.name, message.trim())));
    }
    Ok(recording)
}

/// Writes a script that is played on the stage: what all share, its own text, and the line that begins it.
pub(crate) fn script(dir: &Path, text: &str, begin: &str) -> io::Result<PathBuf> {
    let script = dir.join("script.sh");
    fs::write(&script, format!("{STAGE}\n{text}\n{begin}\n"))?;
    Ok(script)
}

/// Runs a script in namespaces that end with it, after so many seconds at the latest.
pub(crate) fn command(seconds: &str, script: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=2", seconds, "unshare"]).args(NAMESPACES).arg("bash").arg(script);
    command
}
