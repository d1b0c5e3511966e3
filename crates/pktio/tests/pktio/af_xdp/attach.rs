//! The program on the interface: attached natively or through the stack, removed with the port or the process; and what
//! cannot be opened.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use pktio::{AfXdpConfig, Burst, FrameMeta, Port, PortError, Umem, XdpMode};

use super::port::{MODES, open, small, umem_for};
use crate::af_packet::wire::{PATIENCE, Wire, frame, number, receive, write};
use crate::tun::namespace::Namespace;

/// Names the interface that a process of [`holds_a_port_until_it_is_killed`] opens.
const HELD: &str = "TAMIS_TEST_XDP_HELD";

fn has_program(namespace: &Namespace) -> bool {
    namespace.command("ip -d link show dev e0").contains("prog/xdp")
}

/// Waits until it is so: a child that another test starts has copies of a port's descriptors until it becomes the program
/// that it is to run.
#[track_caller]
fn comes_true(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[track_caller]
fn loses_its_program(namespace: &Namespace) {
    comes_true("it has no program any more", || !has_program(namespace));
}

#[test]
fn the_program_goes_with_the_port() {
    for mode in MODES {
        let Some(wire) = Wire::new() else { return };
        assert!(!has_program(&wire.ours));
        let config = small("e0", mode);
        let umem = umem_for(&config, 1);
        let port = open(&wire.ours, &config, &umem).unwrap();
        let said = wire.ours.command("ip -d link show dev e0");
        assert_eq!(said.contains("xdpgeneric"), mode == XdpMode::Generic, "{said}");
        assert!(has_program(&wire.ours));
        let said = port.attached().to_string();
        let expected = if mode == XdpMode::Native { "native" } else { "generic" };
        assert_eq!(said, format!("{expected} XDP, copied, 1 of 1 queues"));
        let mut ports = port.into_parts(2).unwrap();
        assert!(has_program(&wire.ours), "until the last of them ends");
        ports.clear();
        loses_its_program(&wire.ours);
    }
}

/// Run by the next test, in a process of its own.
#[test]
#[ignore = "the other half of another test"]
fn holds_a_port_until_it_is_killed() {
    let Ok(interface) = env::var(HELD) else { return };
    let config = small(&interface, XdpMode::Native);
    let umem = umem_for(&config, 1);
    let _port = pktio::AfXdpPort::open(&config, &umem).unwrap();
    println!("open");
    thread::sleep(2 * PATIENCE);
}

#[test]
fn a_process_that_is_killed_leaves_no_program() {
    let Some(wire) = Wire::new() else { return };
    let mut child = wire.ours.run(|| {
        let program = env::current_exe().unwrap();
        let test = "af_xdp::attach::holds_a_port_until_it_is_killed";
        let mut command = Command::new(program);
        command.args(["--ignored", "--exact", test, "--nocapture"]).env(HELD, "e0");
        command.stdout(Stdio::piped()).spawn().unwrap()
    });
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "open"));
    assert!(has_program(&wire.ours));
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    loses_its_program(&wire.ours);
    let config = small("e0", XdpMode::Native);
    let mut port = open(&wire.ours, &config, &umem_for(&config, 1)).unwrap();
    write(&wire.peer(), &frame(1, 60));
    assert_eq!(number(&receive(&mut port, 1)[0].0), 1);
}

/// The driver of an Ethernet pair refuses a program where the other end's frames may be longer than a page.
#[test]
fn where_the_driver_refuses_the_stack_runs_it_and_the_port_says_so() {
    let Some(wire) = Wire::new() else { return };
    wire.theirs.command("ip link set p0 mtu 9000");
    let config = small("e0", XdpMode::Auto);
    let umem = umem_for(&config, 1);
    let mut port = open(&wire.ours, &config, &umem).unwrap();
    let said = port.attached().to_string();
    assert!(said.starts_with("generic XDP (native: Numerical result out of range"), "{said}");
    let peer = wire.peer();
    write(&peer, &frame(1, 60));
    assert_eq!(number(&receive(&mut port, 1)[0].0), 1);
    // One that no chunk is long enough for is lost and counted.
    wire.ours.command("ip link set e0 mtu 9000");
    write(&peer, &frame(2, 3000));
    write(&peer, &frame(3, 60));
    assert_eq!(number(&receive(&mut port, 1)[0].0), 3);
    assert_eq!((port.stats().rx_lost, port.losses().rx_dropped), (1, 1));
    drop(port);
    loses_its_program(&wire.ours);
    wire.ours.command("ip link set e0 mtu 1500");
    let native = small("e0", XdpMode::Native);
    let refused = open(&wire.ours, &native, &umem).unwrap_err().to_string();
    assert!(refused.starts_with("e0: the MTU, or that of its peer"), "{refused}");
}

#[test]
fn what_cannot_be_opened_says_why() {
    let Some(wire) = Wire::new() else { return };
    let config = small("e0", XdpMode::Auto);
    let umem = umem_for(&config, 2);
    let refused = |config| open(&wire.ours, &config, &umem).unwrap_err().to_string();
    let missing = refused(AfXdpConfig { interface: "e9".to_owned(), ..config.clone() });
    assert!(missing.starts_with("e9: No such device"), "{missing}");
    let odd = refused(AfXdpConfig { ring_frames: 100, ..config.clone() });
    assert!(odd.starts_with("e0: Invalid argument"), "{odd}");
    loses_its_program(&wire.ours);
    let first = open(&wire.ours, &config, &umem).unwrap();
    assert_eq!(refused(config.clone()), "e0: another XDP program is attached (ip link show)");
    drop(first);
    loses_its_program(&wire.ours);
    wire.ours.command("ip link set e0 mtu 3000");
    assert_eq!(
        refused(config.clone()),
        "e0: frames of up to 3022 bytes, by its MTU, and chunks hold 1792: \
         AF_XDP does an MTU of up to 3818"
    );
    assert_eq!(Umem::chunk_bytes_for(3000), Some(4096));
    assert_eq!((Umem::chunk_bytes_for(1500), Umem::chunk_bytes_for(3819)), (Some(2048), None));
    let long = Umem::new(config.chunks(), 4096).unwrap();
    wire.theirs.command("ip link set p0 mtu 3000");
    let mut port = open(&wire.ours, &config, &long).unwrap();
    write(&wire.peer(), &frame(1, 3014));
    assert_eq!(number(&receive(&mut port, 1)[0].0), 1);
    wire.ours.command("ip tuntap add dev t0 mode tun");
    let other = AfXdpConfig { interface: "t0".to_owned(), ..config };
    assert_eq!(refused(other), "t0: not an Ethernet interface");
    assert!(Umem::new(4, 3000).is_err() && Umem::new(0, 2048).is_err());
}

#[test]
fn an_interface_that_is_gone_is_an_error_with_its_name() {
    let Some(wire) = Wire::new() else { return };
    let config = small("e0", XdpMode::Native);
    let umem = umem_for(&config, 1);
    let mut port = open(&wire.ours, &config, &umem).unwrap();
    wire.ours.command("ip link del e0");
    let mut burst = Burst::new();
    for _ in 0..2 {
        let error = port.rx_burst(&mut burst).unwrap_err();
        assert!(matches!(&error, PortError::Gone { name } if name == "e0"), "{error:?}");
    }
    burst.push(&frame(1, 60), FrameMeta::default());
    let error = port.tx_burst(&mut burst).map(|_| port.tx_burst(&mut Burst::new()));
    assert!(!matches!(error, Ok(Ok(1))), "{error:?}");
}

#[test]
fn promiscuous_mode_ends_with_the_port() {
    let Some(wire) = Wire::new() else { return };
    let promiscuity = || {
        let said = wire.ours.command("ip -d link show dev e0");
        let mut words = said.split_whitespace().skip_while(|word| *word != "promiscuity");
        words.nth(1).unwrap().to_string()
    };
    let config = small("e0", XdpMode::Native);
    let umem = umem_for(&config, 2);
    let port = open(&wire.ours, &config, &umem).unwrap();
    assert_eq!(promiscuity(), "1");
    drop(port);
    comes_true("it is not promiscuous any more", || promiscuity() == "0");
    let quiet = AfXdpConfig { promiscuous: false, ..config };
    let _port = open(&wire.ours, &quiet, &umem).unwrap();
    assert_eq!(promiscuity(), "0");
}

/// As many chunks as the queues that there are, as long as the longest frames.
#[test]
fn memory_is_made_for_the_ports_that_share_it() {
    let Some(wire) = Wire::new() else { return };
    let all = AfXdpConfig { queues: 64, ..small("e0", XdpMode::Generic) };
    let one = small("e0", XdpMode::Generic);
    let made = |config: &AfXdpConfig| {
        let configs = [config.clone(), config.clone()];
        wire.ours.run(move || Umem::for_ports(&configs)).unwrap()
    };
    assert_eq!((made(&all).chunks(), made(&all).frame_bytes()), (2 * one.chunks(), 2048 - 256));
    wire.ours.command("ip link set e0 mtu 3000");
    let umem = made(&all);
    assert_eq!(umem.frame_bytes(), 4096 - 256);
    assert_eq!(open(&wire.ours, &all, &umem).unwrap().attached().queues, 1);
    let missing = wire.ours.run(|| Umem::for_ports(&[AfXdpConfig::new("e9")]));
    assert!(missing.unwrap_err().to_string().starts_with("e9: No such device"));
}
