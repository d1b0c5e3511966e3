//! TCP conversations.

use crate::net::*;
use conntrack::tcp::State;
use conntrack::{Config, CtView, Mode, Proto, Status};

fn state(net: &Net) -> State {
    match net.flow().proto() {
        Proto::Tcp(tcp) => tcp.state,
        other => panic!("{other:?}"),
    }
}

/// Seconds that the flow will live.
fn left(net: &Net) -> u64 {
    net.flow().expires_in(net.now) / SECOND
}

fn both(conversation: impl Fn(&mut Net, Line)) {
    for addresses in [V4, V6] {
        conversation(&mut Net::kernel(), Line::new(addresses));
    }
}

#[test]
fn a_handshake_leads_to_an_assured_flow() {
    both(|net, line| {
        assert_eq!(line.there(SYN, 1000, 0).pass(net), Some(New));
        assert_eq!((state(net), left(net)), (State::SynSent, 120));
        assert_eq!(line.back(SYN_ACK, 5000, 1001).pass(net), Some(Established));
        assert_eq!((state(net), left(net)), (State::SynRecv, 60));
        assert!(!net.flow().status().contains(Status::ASSURED));
        assert_eq!(line.there(ACK, 1001, 5001).pass(net), Some(Established));
        assert_eq!((state(net), left(net)), (State::Established, 432_000));
        assert!(net.flow().status().contains(Status::ASSURED));
    });
}

#[test]
fn a_dropped_syn_leaves_nothing_behind() {
    both(|net, line| {
        let syn = line.there(SYN, 1000, 0);
        let dropped = net.with_frame(&syn.frame(), usize::MAX, |net, _, view| {
            net.tracker.discard(&view);
            view.state()
        });
        assert_eq!(dropped, Some(New));
        assert_eq!(line.back(SYN_ACK, 5000, 1001).pass(net), Some(Invalid));
        assert_eq!(syn.pass(net), Some(New));
    });
}

#[test]
fn a_repeated_syn_is_new_and_does_not_renew_the_timeout() {
    both(|net, line| {
        line.there(SYN, 1000, 0).pass(net);
        net.wait(100);
        assert_eq!(line.there(SYN, 1000, 0).pass(net), Some(New));
        assert_eq!(left(net), 20);
        net.wait(21);
        assert_eq!(line.back(SYN_ACK, 5000, 1001).pass(net), Some(Invalid));
    });
}

#[test]
fn half_close_and_the_way_to_time_wait() {
    both(|net, line| {
        open(net, line);
        assert_eq!(line.there(FIN_ACK, 1001, 5001).pass(net), Some(Established));
        assert_eq!(state(net), State::FinWait);
        assert_eq!(line.back(ACK, 5001, 1002).pass(net), Some(Established));
        assert_eq!(state(net), State::CloseWait);
        let data = line.back(ACK, 5001, 1002).payload(500);
        assert_eq!(data.pass(net), Some(Established), "the other half is open");
        assert_eq!(line.there(ACK, 1002, 5501).pass(net), Some(Established));
        assert_eq!(line.back(FIN_ACK, 5501, 1002).pass(net), Some(Established));
        assert_eq!((state(net), left(net)), (State::LastAck, 30));
        assert_eq!(line.there(ACK, 1002, 5502).pass(net), Some(Established));
        assert_eq!((state(net), left(net)), (State::TimeWait, 120));
    });
}

#[test]
fn a_port_is_used_again_after_time_wait() {
    both(|net, line| {
        open(net, line);
        line.there(FIN_ACK, 1001, 5001).pass(net);
        line.back(FIN_ACK, 5001, 1002).pass(net);
        line.there(ACK, 1002, 5002).pass(net);
        assert_eq!(state(net), State::TimeWait);
        let born = net.flow().born();
        assert_eq!(line.there(SYN, 90_000, 0).pass(net), Some(New), "a new flow");
        assert_ne!(net.flow().born(), born);
        assert_eq!(line.back(SYN_ACK, 7000, 90_001).pass(net), Some(Established));
    });
}

#[test]
fn the_server_may_open_the_next_connection() {
    both(|net, line| {
        open(net, line);
        line.there(FIN_ACK, 1001, 5001).pass(net);
        line.back(FIN_ACK, 5001, 1002).pass(net);
        line.there(ACK, 1002, 5002).pass(net);
        assert_eq!(line.back(SYN, 70_000, 0).pass(net), Some(New));
        assert_eq!(line.there(SYN_ACK, 1, 70_001).pass(net), Some(Established));
    });
}

#[test]
fn simultaneous_open() {
    both(|net, line| {
        assert_eq!(line.there(SYN, 1000, 0).pass(net), Some(New));
        assert_eq!(line.back(SYN, 5000, 0).pass(net), Some(Established));
        assert_eq!(state(net), State::SynSent2);
        assert_eq!(line.there(SYN_ACK, 1000, 5001).pass(net), Some(Established));
        assert_eq!(state(net), State::SynRecv);
        assert_eq!(line.back(SYN_ACK, 5000, 1001).pass(net), Some(Established));
        assert_eq!(line.there(ACK, 1001, 5001).pass(net), Some(Established));
        assert_eq!(state(net), State::Established);
    });
}

/// The acknowledgement alone ends a simultaneous open as well (`nf_conntrack_tcp_packet`, TCP_CONNTRACK_SYN_RECV).
#[test]
fn a_simultaneous_open_ends_with_an_acknowledgement() {
    both(|net, line| {
        line.there(SYN, 1000, 0).pass(net);
        line.back(SYN, 5000, 0).pass(net);
        line.there(SYN_ACK, 1000, 5001).pass(net);
        assert_eq!(line.back(ACK, 5001, 1001).pass(net), Some(Established));
        assert_eq!(state(net), State::Established);
    });
}

#[test]
fn out_of_window_is_invalid_and_old_data_is_let_through() {
    both(|net, line| {
        open(net, line);
        let ahead = line.there(ACK, 1001 + 30_000, 5001).payload(10);
        assert_eq!(ahead.pass(net), Some(Invalid));
        let beyond = line.there(ACK, 1001, 5001 + 1);
        assert_eq!(beyond.pass(net), Some(Invalid), "acknowledges what was never sent");
        assert_eq!(line.there(ACK, 1001, 5001).payload(100).pass(net), Some(Established));
        let again = line.there(ACK, 1001, 5001).payload(100);
        assert_eq!(again.pass(net), Some(Established), "a retransmission");
        let over = line.there(ACK, 1001 + 10_001, 5001).payload(10);
        assert_eq!(over.pass(net), Some(Established), "a little over the window");
        net.wait(100);
        let before = left(net);
        let old = line.there(ACK, 1001u32.wrapping_sub(20_000), 5001).payload(100);
        assert_eq!(old.pass(net), Some(Established), "under the lower bound");
        assert_eq!(left(net), before, "it renews nothing");
    });
}

#[test]
fn a_liberal_tracker_takes_what_is_out_of_window() {
    let config = Config { liberal: true, ..kernel() };
    let mut net = Net::new(config);
    let line = Line::new(V4);
    open(&mut net, line);
    let ahead = line.there(ACK, 1001 + 30_000, 5001).payload(10);
    assert_eq!(ahead.pass(&mut net), Some(Established));
}

#[test]
fn windows_are_scaled_where_both_sides_say_so() {
    const SCALE_7: &[u8] = &[1, 3, 3, 7];
    for (answer, expected) in [(SCALE_7, Established), (&[1, 1, 1, 1][..], Invalid)] {
        let mut net = Net::kernel();
        let line = Line::new(V4);
        line.there(SYN, 1000, 0).options(SCALE_7).pass(&mut net);
        line.back(SYN_ACK, 5000, 1001).options(answer).pass(&mut net);
        line.there(ACK, 1001, 5001).window(1000).pass(&mut net);
        let far = line.back(ACK, 5001 + 100_000, 1001).payload(10);
        assert_eq!(far.pass(&mut net), Some(expected));
    }
}

#[test]
fn selective_acknowledgements_count() {
    const PERMITTED: &[u8] = &[1, 1, 4, 2];
    let mut net = Net::kernel();
    let line = Line::new(V4);
    line.there(SYN, 1000, 0).options(PERMITTED).pass(&mut net);
    line.back(SYN_ACK, 5000, 1001).options(PERMITTED).pass(&mut net);
    line.there(ACK, 1001, 5001).pass(&mut net);
    let sack = |right: u32| {
        let mut options = vec![1, 1, 5, 10];
        options.extend_from_slice(&1001u32.to_be_bytes());
        options.extend_from_slice(&right.to_be_bytes());
        options
    };
    let fits = line.back(ACK, 5001, 1001).options(&sack(1001));
    assert_eq!(fits.pass(&mut net), Some(Established));
    let never_sent = line.back(ACK, 5001, 1001).options(&sack(3000));
    assert_eq!(never_sent.pass(&mut net), Some(Invalid));
}

#[test]
fn a_reset_counts_only_where_the_other_side_expects_it() {
    both(|net, line| {
        open(net, line);
        line.there(ACK, 1001, 5001).payload(100).pass(net);
        line.back(ACK, 5001, 1101).pass(net);
        assert_eq!(line.there(RST, 1050, 0).pass(net), Some(Invalid), "before the expected byte");
        assert_eq!(line.there(RST, 1105, 0).pass(net), Some(Established));
        assert_eq!(state(net), State::Established, "it may be challenged");
        assert_eq!(line.there(RST, 1101, 0).pass(net), Some(Established));
        assert_eq!((state(net), left(net)), (State::Close, 10));
    });
}

#[test]
fn a_reset_in_answer_to_a_syn_ends_the_flow() {
    both(|net, line| {
        line.there(SYN, 1000, 0).pass(net);
        assert_eq!(line.back(RST_ACK, 0, 1001).pass(net), Some(Established));
        assert!(net.tracker.living(net.now).next().is_none());
        assert_eq!(line.back(RST_ACK, 0, 1001).pass(net), Some(Invalid));
    });
}

#[test]
fn a_flow_is_picked_up_loosely_or_not_at_all() {
    both(|net, line| {
        assert_eq!(line.there(ACK, 1001, 5001).payload(10).pass(net), Some(New));
        assert_eq!((state(net), left(net)), (State::Established, 300));
        assert_eq!(line.there(ACK, 1011, 5001).pass(net), Some(New), "no answer yet");
        assert_eq!(line.back(ACK, 5001, 1011).pass(net), Some(Established));
        assert_eq!(line.there(ACK, 1011, 5001).pass(net), Some(Established));
        assert!(net.flow().status().contains(Status::ASSURED));
    });
    let mut net = Net::new(Config { loose: false, ..kernel() });
    let line = Line::new(V4);
    assert_eq!(line.there(ACK, 1001, 5001).pass(&mut net), Some(Invalid));
}

#[test]
fn what_begins_no_flow_is_invalid() {
    both(|net, line| {
        for flags in [FIN_ACK, RST, RST_ACK, SYN_ACK] {
            assert_eq!(line.there(flags, 1001, 5001).pass(net), Some(Invalid), "{flags}");
        }
        assert!(net.tracker.is_empty());
    });
}

#[test]
fn midstream_takes_unknown_segments_for_established() {
    let mut net = Net::new(Config { mode: Mode::Midstream, ..kernel() });
    let line = Line::new(V4);
    let taken = |view: CtView| view.as_taken().and_then(|view| view.state());
    let view = net.pass_frame(&line.there(ACK, 1001, 5001).payload(10).frame());
    assert_eq!((taken(view), view.assumed, view.is_first), (Some(Established), true, true));
    let view = net.pass_frame(&line.there(ACK, 1011, 5001).frame());
    assert_eq!((taken(view), view.assumed, view.is_first), (Some(Established), true, false));
    assert!(net.flow().is_assumed());
    let other = Line { ports: [40_001, 80], ..line };
    let view = net.pass_frame(&other.there(FIN_ACK, 1, 1).frame());
    assert_eq!(taken(view), Some(Established));
    let next = Line { ports: [1, 80], ..line };
    assert_eq!(next.there(SYN, 1, 0).pass(&mut net), Some(New));
}

#[test]
fn malformed_segments_are_invalid() {
    both(|net, line| {
        open(net, line);
        let good = line.there(ACK, 1001, 5001).payload(4).frame();
        let network = if good[0] >> 4 == 4 { 20 } else { 40 };
        let with = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[network + at] = value;
            bytes
        };
        for (at, value) in [(12, 0x40), (12, 0xf0), (16, 0xff), (23, 0xff)] {
            let state = net.pass_frame(&with(at, value)).state();
            assert_eq!(state, Some(Invalid), "byte {at}");
        }
        for flags in [0x00u8, 0x01, 0x03, 0x06, 0x29, 0x3f] {
            let segment = line.there(packet::tcp::Flags(flags), 1001, 5001);
            assert_eq!(segment.pass(net), Some(Invalid), "{flags:#x}");
        }
        assert_eq!(net.pass_frame(&good).state(), Some(Established));
    });
}

#[test]
fn a_syn_in_the_middle_passes_and_is_learned_from_its_answer() {
    both(|net, line| {
        open(net, line);
        // The client crashed and begins again; the server answers.
        assert_eq!(line.there(SYN, 400_000, 0).pass(net), Some(Established));
        assert_eq!(state(net), State::Established);
        assert_eq!(line.back(SYN_ACK, 800_000, 400_001).pass(net), Some(Established));
        assert_eq!(state(net), State::SynRecv);
        assert_eq!(line.there(ACK, 400_001, 800_001).pass(net), Some(Established));
        assert_eq!(state(net), State::Established);
    });
}

#[test]
fn a_challenge_is_not_taken_for_the_last_acknowledgement() {
    both(|net, line| {
        open(net, line);
        line.there(FIN_ACK, 1001, 5001).pass(net);
        line.back(FIN_ACK, 5001, 1002).pass(net);
        assert_eq!(state(net), State::LastAck);
        line.there(SYN, 9000, 0).pass(net);
        assert_eq!(line.back(ACK, 5002, 1002).pass(net), Some(Established));
        assert_eq!(state(net), State::LastAck);
        line.back(ACK, 5002, 1002).pass(net);
        assert_eq!(state(net), State::TimeWait);
    });
}

#[test]
fn retransmissions_and_unacknowledged_data_shorten_the_timeout() {
    both(|net, line| {
        open(net, line);
        line.there(ACK, 1001, 5001).payload(100).pass(net);
        assert_eq!(left(net), 300, "not acknowledged yet");
        line.back(ACK, 5001, 1101).pass(net);
        assert_eq!(left(net), 432_000);
        for expected in [432_000, 432_000, 300] {
            line.back(ACK, 5001, 1101).pass(net);
            assert_eq!(left(net), expected);
        }
    });
}

#[test]
fn a_reset_sent_by_the_filter_closes_the_flow() {
    let mut net = Net::kernel();
    let line = Line::new(V4);
    open(&mut net, line);
    let view = net.pass_frame(&line.there(ACK, 1001, 5001).frame());
    net.tracker.close(&view, net.now);
    assert_eq!((state(&net), left(&net)), (State::Close, 10));
}

/// Measured: after a SYN that repeats within the handshake, a reset of the same side must fit; one of the
/// other side may answer what was let through before.
#[test]
fn a_reset_does_not_answer_a_syn_of_its_own_side() {
    let stray = |net: &mut Net, line: Line| {
        line.there(SYN, 5000, 0).pass(net);
        line.back(ACK, 700, 300).payload(11).pass(net);
    };
    both(|net, line| {
        stray(net, line);
        assert_eq!(line.there(RST_ACK, 1, 711).pass(net), Some(Established));
    });
    both(|net, line| {
        stray(net, line);
        line.there(SYN, 0, 0).pass(net);
        assert_eq!(line.there(RST_ACK, 1, 711).pass(net), Some(Invalid));
    });
}

/// `nf_conntrack_tcp_packet`, TCP_CONNTRACK_CLOSE: only a reset is let through by its number alone.
#[test]
fn segments_after_a_reset_still_have_to_fit() {
    both(|net, line| {
        open(net, line);
        line.there(RST, 1001, 0).pass(net);
        assert_eq!(state(net), State::Close);
        let ahead = line.back(ACK, 5001 + 90_000, 1001).payload(10);
        assert_eq!(ahead.pass(net), Some(Invalid));
        assert_eq!(line.back(ACK, 5001, 1001).payload(10).pass(net), Some(Established));
    });
}

/// `nf_conntrack_tcp_packet`: a reset in a train of data counts before the data is acknowledged.
#[test]
fn a_reset_right_after_unacknowledged_data_closes_and_one_beyond_it_does_not() {
    both(|net, line| {
        open(net, line);
        line.there(ACK, 1001, 5001).payload(100).pass(net);
        assert_eq!(line.there(RST, 1110, 0).pass(net), Some(Established));
        assert_eq!(state(net), State::Established, "neither acknowledged nor the next byte");
    });
    both(|net, line| {
        open(net, line);
        line.there(ACK, 1001, 5001).payload(100).pass(net);
        assert_eq!(line.there(RST, 1101, 0).pass(net), Some(Established));
        assert_eq!(state(net), State::Close);
    });
}

/// `nf_tcp_handle_invalid`: both sides have given the connection up, by segments that do not fit.
#[test]
fn ends_out_of_window_of_both_sides_shorten_a_long_life() {
    both(|net, line| {
        open(net, line);
        let ends = [line.there(FIN_ACK, 1001 + 90_000, 5001), line.back(FIN_ACK, 95_001, 1001)];
        assert_eq!(ends[0].pass(net), Some(Invalid));
        assert_eq!(ends[0].pass(net), Some(Invalid));
        assert_eq!(left(net), 432_000, "one side alone");
        let data = line.back(ACK, 95_001, 1001).payload(10);
        assert_eq!((data.pass(net), left(net)), (Some(Invalid), 432_000), "no end");
        assert_eq!(ends[1].pass(net), Some(Invalid));
        assert_eq!((state(net), left(net)), (State::Established, 300));
    });
    both(|net, line| {
        open(net, line);
        net.wait(432_000 - 200);
        line.there(FIN_ACK, 1001 + 90_000, 5001).pass(net);
        line.back(FIN_ACK, 95_001, 1001).pass(net);
        assert_eq!(left(net), 200, "no life becomes longer");
    });
}

/// `nf_conntrack_tcp_timeout_max_retrans`, `nf_conntrack_tcp_timeout_unacknowledged`.
#[test]
fn the_timeouts_of_what_is_not_acknowledged_are_settings() {
    let mut config = kernel();
    assert!(config.timeouts.set("tcp_timeout_max_retrans", 77));
    assert!(config.timeouts.set("tcp_timeout_unacknowledged", 88));
    let mut net = Net::new(config);
    let line = Line::new(V4);
    open(&mut net, line);
    line.there(ACK, 1001, 5001).payload(100).pass(&mut net);
    assert_eq!(left(&net), 88);
    for _ in 0..4 {
        line.back(ACK, 5001, 1101).pass(&mut net);
    }
    assert_eq!(left(&net), 77);
}

/// What the client offered in the SYN that was let through holds once the server has answered it.
#[test]
fn a_connection_that_began_anew_scales_its_windows() {
    const SCALE_7: &[u8] = &[1, 3, 3, 7];
    for (offer, expected) in [(SCALE_7, Established), (&[1, 1, 1, 1][..], Invalid)] {
        let mut net = Net::kernel();
        let line = Line::new(V4);
        open(&mut net, line);
        line.there(SYN, 400_000, 0).options(offer).pass(&mut net);
        line.back(SYN_ACK, 800_000, 400_001).options(SCALE_7).pass(&mut net);
        line.there(ACK, 400_001, 800_001).window(1000).pass(&mut net);
        let far = line.back(ACK, 800_001 + 100_000, 400_001).payload(10);
        assert_eq!(far.pass(&mut net), Some(expected));
    }
}

/// `CHECKSUM_PARTIAL`: the sum of the pseudo header alone, for the network card to finish.
#[test]
fn a_checksum_that_was_left_to_the_network_card_is_not_wrong() {
    both(|net, line| {
        let mut syn = line.there(SYN, 1000, 0).frame();
        let network = if syn[0] >> 4 == 4 { 20 } else { 40 };
        let len = (syn.len() - network) as u16;
        let pseudo = match line.addresses {
            packet::craft::Addresses::V4 { source, destination } => {
                packet::checksum::pseudo_v4(source, destination, 6, len)
            }
            packet::craft::Addresses::V6 { source, destination } => {
                packet::checksum::pseudo_v6(source, destination, 6, len.into())
            }
        };
        let sum = network + 16..network + 18;
        syn[sum.clone()].copy_from_slice(&(pseudo ^ 1).to_be_bytes());
        assert_eq!(net.pass_frame(&syn).state(), Some(Invalid));
        syn[sum].copy_from_slice(&pseudo.to_be_bytes());
        assert_eq!(net.pass_frame(&syn).state(), Some(New));
    });
}

/// `nf_conntrack_tcp_packet`: a connection that was reset is opened again by the side that reset it alone.
#[test]
fn the_side_that_was_reset_does_not_begin_anew() {
    for (by_client, begins) in [(true, true), (false, false)] {
        let mut net = Net::kernel();
        let line = Line::new(V4);
        open(&mut net, line);
        let reset = if by_client { line.there(RST, 1001, 0) } else { line.back(RST, 5001, 0) };
        reset.pass(&mut net);
        assert_eq!(state(&net), State::Close);
        let born = net.flow().born();
        line.there(SYN, 90_000, 0).pass(&mut net);
        assert_eq!(net.flow().born() != born, begins);
    }
}

/// A reset before the handshake is over must not lie before what the other side has acknowledged.
#[test]
fn a_reset_before_the_acknowledged_byte_ends_no_handshake() {
    both(|net, line| {
        line.there(SYN, 1000, 0).pass(net);
        line.back(SYN_ACK, 5000, 1001).pass(net);
        assert_eq!(line.there(RST, 500, 0).pass(net), Some(Invalid));
        assert_eq!(state(net), State::SynRecv);
    });
}

/// RFC 5961 section 4: a server that knows another connection challenges the SYN, and the reset answers that.
#[test]
fn a_reset_answers_a_challenge_where_it_was_asked_for() {
    let answered = |net: &mut Net, line: Line, sequence: u32| {
        line.there(SYN, 1000, 0).pass(net);
        assert_eq!(line.back(ACK, 700, 300_000).pass(net), Some(Established));
        line.there(RST, sequence, 0).pass(net)
    };
    both(|net, line| {
        assert_eq!(answered(net, line, 300_000), Some(Established));
        assert_eq!(state(net), State::Close);
    });
    both(|net, line| {
        assert_eq!(answered(net, line, 90_000), Some(Invalid));
        assert_eq!(state(net), State::SynSent);
    });
}

/// `tcp_can_early_drop`: of a connection that closes, the ports may be in use again, and no number is right.
#[test]
fn a_reset_ends_a_closing_connection_whatever_its_number() {
    both(|net, line| {
        open(net, line);
        assert_eq!(line.back(RST, 400, 0).pass(net), Some(Invalid), "it is open");
        line.there(FIN_ACK, 1001, 5001).pass(net);
        assert_eq!(line.back(RST, 400, 0).pass(net), Some(Established));
        assert_eq!(state(net), State::Close);
    });
}
