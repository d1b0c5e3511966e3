//! Requests on the line: each comes as it was sent, and none with a word that it does not have.

use live::{BanAction, FlowWords, Place, Request};
use proptest::option::of;
use proptest::prelude::*;
use serde_json::{Value, json};

fn flows() -> impl Strategy<Value = FlowWords> {
    let word = || of(any::<String>());
    let numbers = (of(any::<u16>()), of(any::<u16>()));
    (word(), word(), word(), numbers, word(), word(), word()).prop_map(
        |(protocol, src, dst, (sport, dport), reply_src, reply_dst, mark)| FlowWords {
            protocol,
            src,
            dst,
            sport,
            dport,
            reply_src,
            reply_dst,
            mark,
        },
    )
}

fn place() -> impl Strategy<Value = Option<Place>> {
    let place = |(worker, table, slot)| Place { worker, table, slot };
    of(any::<(usize, usize, usize)>().prop_map(place))
}

fn action() -> impl Strategy<Value = Option<BanAction>> {
    use BanAction::{Accept, Ban, Deny, Unban};
    of(prop::sample::select(vec![Ban, Unban, Accept, Deny]))
}

fn request() -> impl Strategy<Value = Request> {
    let line = || any::<usize>();
    prop_oneof![
        Just(Request::Status {}),
        any::<bool>().prop_map(|save| Request::Counters { save }),
        Just(Request::Stop {}),
        (any::<String>(), action(), line()).prop_map(|(text, action, line)| Request::Bans {
            text,
            action,
            line
        }),
        (of(any::<String>()), line()).prop_map(|(set, most)| Request::SetsList { set, most }),
        (any::<String>(), line()).prop_map(|(text, line)| Request::SetsRestore { text, line }),
        (flows(), place(), line()).prop_map(|(flows, from, most)| Request::ConntrackList {
            flows,
            from,
            most
        }),
        (flows(), place()).prop_map(|(flows, from)| Request::ConntrackDelete { flows, from }),
        place().prop_map(|from| Request::ConntrackFlush { from }),
    ]
}

proptest! {
    #[test]
    fn a_request_comes_as_it_was_sent(request in request(), word in "[a-z]{12}") {
        let line = serde_json::to_string(&request).unwrap();
        prop_assert!(!line.contains('\n'));
        prop_assert_eq!(&serde_json::from_str::<Request>(&line).unwrap(), &request);

        let mut other: Value = serde_json::from_str(&line).unwrap();
        other[&word] = json!(1);
        let error = serde_json::from_str::<Request>(&other.to_string()).unwrap_err().to_string();
        prop_assert!(error.contains(&format!("unknown field `{word}`")), "{error}");
        if let Some(flows) = other.get_mut("flows") {
            flows[&word] = json!(1);
            other.as_object_mut().unwrap().remove(&word);
            let error = serde_json::from_str::<Request>(&other.to_string()).unwrap_err().to_string();
            prop_assert!(error.contains(&format!("unknown field `{word}`")), "{error}");
        }
    }
}
