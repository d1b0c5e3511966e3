//! A network namespace that lives exactly as long as a thread.
//!
//! The thread unshares its namespace, sets it up, does the work and ends; the kernel then takes the
//! namespace apart with every device, rule and counter in it. Nothing has a name, so nothing is left
//! behind by a panic or a kill.
//!
//! The settings make every packet that can be routed reach FORWARD, and keep the kernel from sending
//! packets of its own. Source: `Documentation/networking/ip-sysctl.rst`.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use super::sys;

/// Settings of the whole namespace.
const GLOBAL: &[(&str, &str)] = &[
    ("ipv4/ip_forward", "1"),
    ("ipv6/conf/all/forwarding", "1"),
    ("ipv4/icmp_ratelimit", "0"),
    ("ipv4/icmp_msgs_per_sec", "100000000"),
    ("ipv6/icmp/ratelimit", "0"),
    ("ipv4/icmp_echo_ignore_all", "1"),
    ("ipv6/icmp/echo_ignore_all", "1"),
    ("netfilter/nf_log/2", "nfnetlink_log"),
    ("netfilter/nf_log/10", "nfnetlink_log"),
];

/// Settings of each device, IPv4.
const DEVICE_V4: &[(&str, &str)] = &[
    ("rp_filter", "0"),
    ("accept_local", "1"),
    ("route_localnet", "1"),
    ("accept_source_route", "1"),
    ("send_redirects", "0"),
    ("log_martians", "0"),
];

/// Settings of each device, IPv6. `addr_gen_mode` 1 gives no link-local address, so nothing is announced.
const DEVICE_V6: &[(&str, &str)] = &[
    ("accept_dad", "0"),
    ("accept_ra", "0"),
    ("autoconf", "0"),
    ("router_solicitations", "0"),
    ("addr_gen_mode", "1"),
    ("accept_source_route", "1"),
    // In milliseconds: or the host tells its groups (MLD) while packets are compared.
    ("mldv2_unsolicited_report_interval", "1"),
];

/// Runs `work` on a thread in a fresh namespace with `lo` up.
pub fn in_fresh<T, F>(work: F) -> io::Result<T>
where
    T: Send,
    F: FnOnce() -> io::Result<T> + Send,
{
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            sys::unshare_network()?;
            set_up()?;
            work()
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Moves the calling thread into a fresh namespace with `lo` up, and nothing set: it answers as any host does.
pub(crate) fn enter_bare() -> io::Result<()> {
    sys::unshare_network()?;
    ip("link set lo up\n")
}

fn set_up() -> io::Result<()> {
    for (name, value) in GLOBAL {
        write_setting(name, value)?;
    }
    settle_device("all")?;
    settle_device("default")?;
    ip("link set lo up\n")
}

/// Gives a device (or `default`, for those to come) the settings above.
pub fn settle_device(device: &str) -> io::Result<()> {
    for (name, value) in DEVICE_V4 {
        write_setting(&format!("ipv4/conf/{device}/{name}"), value)?;
    }
    for (name, value) in DEVICE_V6 {
        write_setting(&format!("ipv6/conf/{device}/{name}"), value)?;
    }
    Ok(())
}

/// Writes `/proc/sys/net/NAME` of the calling thread's namespace.
pub fn write_setting(name: &str, value: &str) -> io::Result<()> {
    let path = Path::new("/proc/sys/net").join(name);
    fs::write(&path, value)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Runs lines of ip(8) commands in the calling thread's namespace.
pub fn ip(lines: &str) -> io::Result<()> {
    feed(Command::new("ip").args(["-force", "-batch", "-"]), lines)
}

/// Runs a command with `text` on its standard input; what it says on failure becomes the error.
pub fn feed(command: &mut Command, text: &str) -> io::Result<()> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("{command:?}: {error}")))?;
    if let Some(mut input) = child.stdin.take() {
        // A command that refuses its first line may close its input early: its words say more.
        let _ = input.write_all(text.as_bytes());
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{command:?}: {}", message.trim())))
}

/// Index of a device of the calling thread's namespace.
pub(super) fn device_index(name: &str) -> io::Result<u32> {
    // `/sys/class/net` shows the namespace it was mounted in; netlink by way of ip(8) shows ours.
    let output = Command::new("ip").args(["-o", "link", "show", "dev", name]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let index = text.split(':').next().and_then(|first| first.trim().parse().ok());
    index.ok_or_else(|| io::Error::other(format!("no device {name}")))
}
