//! The lanes of a TUN device: which of a device's queues a packet of the host waits in.
//!
//! What a host sends into a tunnel waits until it is sealed, and ten downloads fill any queue: in one queue for all, a ping
//! waits behind them, and is dropped with them. So each device has several, which are received from in turn.
//!
//! Contract: packets of one flow have one lane, so their order stays: a flow is what has both addresses, and of TCP and UDP
//! both ports, in common; fragments, which have no ports, are a flow of their own. TCP has lanes that nothing else has.
//! Anything that is no IP packet has the first. Two flows may share a lane.
//! Source: Linux `tun_ebpf_select_queue` (`drivers/net/tun.c`); loads from packets: `Documentation/bpf/standardization`,
//! "Legacy BPF Packet access instructions".

use pktio::{TunLanes, bpf_instruction as instruction};

/// Lanes of a device, and how many of them are for what is not TCP.
pub(crate) const LANES: u16 = 16;
const OTHERS: u16 = 4;

const TCP: i32 = 6;
const UDP: i32 = 17;
/// An odd number, of which each bit depends on luck.
const MIX: i32 = 0x61c8_8647;
const PRIME: i32 = 31;

// Registers: what is loaded, the packet, and of the flow the protocol, the hash, and where ports are.
const LOADED: u8 = 0;
const PACKET: u8 = 6;
const PROTOCOL: u8 = 7;
const HASH: u8 = 8;
const PORTS: u8 = 9;

/// The lanes of a tunnel's device.
pub(crate) fn lanes() -> TunLanes {
    TunLanes { count: LANES, program: program() }
}

/// A packet too short for a load ends the program with 0.
fn program() -> Vec<u64> {
    let (v4, v6, ports, lane) = (v4(), v6(), ports(), lane());
    let (past_v6, past_v4) = (v6.len() + 1, v4.len());
    let mut all = vec![
        set_from(PACKET, 1),
        set(HASH, 0),
        set(PROTOCOL, 0),
        load_byte(0),
        set_from(PORTS, LOADED),
        right(LOADED, 4),
        if_is(LOADED, 4, past_v6 + 1),
        if_is_not(LOADED, 6, past_v6 + past_v4 + ports.len()),
    ];
    all.extend(v6);
    all.push(skip(past_v4));
    all.extend(v4);
    all.extend(ports);
    all.extend(lane);
    all
}

fn v6() -> Vec<u64> {
    const ADDRESSES: [i32; 8] = [8, 12, 16, 20, 24, 28, 32, 36];
    let mut all = vec![load_byte(6), set_from(PROTOCOL, LOADED), set(PORTS, 40)];
    ADDRESSES.into_iter().for_each(|at| all.extend(hash(load_word(at))));
    all
}

/// Fragments skip what finds ports.
fn v4() -> Vec<u64> {
    let mut all = vec![and(PORTS, 15), left(PORTS, 2), load_byte(9), set_from(PROTOCOL, LOADED)];
    [12, 16].into_iter().for_each(|at| all.extend(hash(load_word(at))));
    all.extend([load_half(6), and(LOADED, 0x3fff), if_is_not(LOADED, 0, ports().len())]);
    all
}

fn ports() -> Vec<u64> {
    let found = hash(load_word_beyond(PORTS));
    let mut all = vec![if_is(PROTOCOL, TCP, 1), if_is_not(PROTOCOL, UDP, found.len())];
    all.extend(found);
    all
}

fn lane() -> Vec<u64> {
    let others = i32::from(OTHERS);
    vec![
        multiply(HASH, MIX),
        right(HASH, 16),
        and(HASH, 0xffff),
        set_from(LOADED, HASH),
        if_is(PROTOCOL, TCP, 2),
        remainder(LOADED, others),
        exit(),
        remainder(LOADED, i32::from(LANES) - others),
        add(LOADED, others),
        exit(),
    ]
}

/// Takes what `load` loads into the hash.
fn hash(load: u64) -> [u64; 3] {
    [load, multiply(HASH, PRIME), instruction(0xaf, HASH, LOADED, 0, 0)]
}

fn load_byte(at: i32) -> u64 {
    instruction(0x30, 0, 0, 0, at)
}

fn load_half(at: i32) -> u64 {
    instruction(0x28, 0, 0, 0, at)
}

fn load_word(at: i32) -> u64 {
    instruction(0x20, 0, 0, 0, at)
}

/// A word at the place that a register says.
fn load_word_beyond(register: u8) -> u64 {
    instruction(0x40, 0, register, 0, 0)
}

fn set(register: u8, value: i32) -> u64 {
    instruction(0xb7, register, 0, 0, value)
}

fn set_from(register: u8, other: u8) -> u64 {
    instruction(0xbf, register, other, 0, 0)
}

fn and(register: u8, bits: i32) -> u64 {
    instruction(0x57, register, 0, 0, bits)
}

fn left(register: u8, bits: i32) -> u64 {
    instruction(0x67, register, 0, 0, bits)
}

fn right(register: u8, bits: i32) -> u64 {
    instruction(0x77, register, 0, 0, bits)
}

fn add(register: u8, value: i32) -> u64 {
    instruction(0x07, register, 0, 0, value)
}

fn multiply(register: u8, by: i32) -> u64 {
    instruction(0x27, register, 0, 0, by)
}

fn remainder(register: u8, by: i32) -> u64 {
    instruction(0x97, register, 0, 0, by)
}

fn skip(instructions: usize) -> u64 {
    instruction(0x05, 0, 0, instructions as i16, 0)
}

/// Skips instructions if a register has a value.
fn if_is(register: u8, value: i32, skipped: usize) -> u64 {
    instruction(0x15, register, 0, skipped as i16, value)
}

fn if_is_not(register: u8, value: i32, skipped: usize) -> u64 {
    instruction(0x55, register, 0, skipped as i16, value)
}

fn exit() -> u64 {
    instruction(0x95, 0, 0, 0, 0)
}

#[cfg(test)]
mod tests;
