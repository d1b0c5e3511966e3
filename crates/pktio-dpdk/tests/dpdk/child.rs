//! A process for each test.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs, process};

use pktio_dpdk::{DpdkConfig, DpdkPort, Eal};

/// Set for the process of one test.
const CHILD: &str = "TAMIS_DPDK_CHILD";

/// Where the EAL of root has a folder for each prefix.
const FOLDERS: &str = "/var/run/dpdk";

/// Returns the prefix of a process's files.
fn prefix(process: u32) -> String {
    format!("tamis-test-{process}")
}

/// Runs the test of this name, with an EAL that has these devices.
pub(crate) fn with_devices(test: &str, devices: &[&str], run: impl FnOnce(&Eal)) {
    with_devices_in(None, test, devices, run);
}

/// Runs the test in its own network namespace, where these shell commands have run. The namespace ends with the
/// process.
pub(crate) fn with_devices_in(
    links: Option<&str>,
    test: &str,
    devices: &[&str],
    run: impl FnOnce(&Eal),
) {
    if env::var_os(CHILD).is_some() {
        return run(&start(devices));
    }
    if !is_root() {
        println!("SKIPPED: not root, so the EAL cannot start");
        return;
    }
    let child = program(links)
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let folder = Path::new(FOLDERS).join(prefix(child.id()));
    let output = child.wait_with_output().unwrap();
    // The EAL leaves it behind, and has none if it was refused.
    let _ = fs::remove_dir_all(folder);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("1 passed"), "{test}: {said}");
}

/// This program again.
fn program(links: Option<&str>) -> Command {
    let this = env::current_exe().unwrap();
    let Some(links) = links else { return Command::new(this) };
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", &format!("{links}; exec \"$0\" \"$@\"")]).arg(this);
    command
}

fn start(devices: &[&str]) -> Eal {
    let prefix = format!("--file-prefix={}", prefix(process::id()));
    let fixed = ["--no-huge", "-m", "96", "--no-pci", "--no-shconf", "--no-telemetry"];
    let devices = devices.iter().map(|device| format!("--vdev={device}"));
    let arguments: Vec<String> =
        fixed.map(str::to_owned).into_iter().chain([prefix]).chain(devices).collect();
    Eal::init("tamis", &arguments).unwrap()
}

/// The only queue of a device, opened as told.
pub(crate) fn open(eal: &Eal, device: &str, tell: impl FnOnce(&mut DpdkConfig)) -> DpdkPort {
    let mut config = DpdkConfig::new(device);
    tell(&mut config);
    let mut ports = DpdkPort::open(eal, &config).unwrap();
    assert_eq!(ports.len(), 1);
    ports.pop().unwrap()
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

/// Numbers that look random, and are the same each time.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    /// One of `0..below`.
    pub(crate) fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }

    /// Bytes of a frame, as long as told.
    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.below(256) as u8).collect()
    }
}
