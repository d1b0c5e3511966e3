//! What configurations say of directories: where the directories of a network are, and the etcd that they share.

use std::net::SocketAddr;

use overlay::limits::DIRECTORIES;
use serde::Deserialize;
use toml::Spanned;
use tunnel::PublicKey;

use crate::config::{endpoint, key};
use crate::policy::{Wrong, wrong};

/// `[nms]` of a relay or an authority: its directory, at one place or at each of several.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nms {
    public: Spanned<Places>,
    key: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Places {
    One(String),
    Several(Vec<String>),
}

/// `[etcd]`: the store that several directories share.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Etcd {
    endpoints: Spanned<Vec<Spanned<String>>>,
}

impl Nms {
    /// Where the directory may be, and its key.
    pub(crate) fn read(&self) -> Result<(Vec<SocketAddr>, PublicKey), Wrong> {
        let texts = match self.public.get_ref() {
            Places::One(text) => std::slice::from_ref(text),
            Places::Several(texts) => texts,
        };
        if texts.is_empty() || texts.len() > DIRECTORIES {
            let what = format!("expected ADDRESS:PORT, or a list of at most {DIRECTORIES}");
            return Err(Wrong { at: self.public.span().start, what });
        }
        let place = |text: &String| endpoint(&Spanned::new(self.public.span(), text.clone()));
        Ok((texts.iter().map(place).collect::<Result<_, _>>()?, key(&self.key)?))
    }
}

/// Where the other directories of a network are: few.
pub(crate) fn also(given: &[Spanned<String>]) -> Result<Vec<SocketAddr>, Wrong> {
    match given.get(DIRECTORIES - 1) {
        Some(one) => Err(wrong(one, "no more than 3 other directories")),
        None => given.iter().map(endpoint).collect(),
    }
}

impl Etcd {
    /// The servers, `HOST:PORT`. They are spoken to in the clear.
    pub(crate) fn servers(&self) -> Result<Vec<String>, Wrong> {
        let given = self.endpoints.get_ref();
        if given.is_empty() {
            let what = "expected servers of etcd, such as [\"http://10.0.0.4:2379\"]".to_owned();
            return Err(Wrong { at: self.endpoints.span().start, what });
        }
        given.iter().map(server).collect()
    }
}

fn server(url: &Spanned<String>) -> Result<String, Wrong> {
    let text = url.get_ref().trim_end_matches('/');
    if text.starts_with("https://") {
        let expected = "http://HOST:PORT, as TLS to etcd is not built: it has to be on this host, or in a \
                        network that is yours alone";
        return Err(wrong(url, expected));
    }
    let is_server = |text: &&str| {
        let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        let is_word = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
        is_word && !text.starts_with(':') && port.is_some_and(|port| port != 0)
    };
    let server = text.strip_prefix("http://").filter(is_server);
    server.map(str::to_owned).ok_or_else(|| wrong(url, "http://HOST:PORT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(list: &str) -> Result<Vec<String>, String> {
        let text = format!("endpoints = {list}\n");
        let table: Etcd = toml::from_str(&text).map_err(|error| error.to_string())?;
        table.servers().map_err(|wrong| wrong.placed("cloud.toml", &text))
    }

    #[test]
    fn servers_of_etcd_are_named_by_urls_without_tls() {
        let good =
            servers("[\"http://10.0.0.4:2379\", \"http://etcd.lan:9/\", \"http://[::1]:1\"]");
        assert_eq!(good.unwrap(), ["10.0.0.4:2379", "etcd.lan:9", "[::1]:1"]);
        let found = servers("[\"https://10.0.0.4:2379\"]").unwrap_err();
        assert!(found.starts_with("cloud.toml:1:14: expected http://HOST:PORT, as TLS"), "{found}");
        for wrong in ["10.0.0.4:2379", "http://10.0.0.4", "http://:1", "http://a:0", "http://a:1/b"]
        {
            let found = servers(&format!("[\"{wrong}\"]")).unwrap_err();
            assert!(found.contains("expected http://HOST:PORT, found"), "{found}");
        }
        assert!(servers("[]").unwrap_err().contains("expected servers of etcd"));
    }

    #[test]
    fn a_directory_has_one_place_or_several() {
        let nms = |public: &str| {
            let key = PublicKey::new([3; 32]);
            let text = format!("public = {public}\nkey = \"{key}\"\n");
            let table: Nms = toml::from_str(&text).map_err(|error| error.to_string())?;
            table.read().map(|(places, _)| places).map_err(|wrong| wrong.placed("trs.toml", &text))
        };
        assert_eq!(nms("\"192.0.2.1:9\"").unwrap().len(), 1);
        assert_eq!(nms("[\"192.0.2.1:9\", \"[2001:db8::1]:9\"]").unwrap().len(), 2);
        let found = nms("[\"192.0.2.1:9\", \"192.0.2.1\"]").unwrap_err();
        assert!(found.contains("found \"192.0.2.1\""), "{found}");
        assert!(nms("[]").unwrap_err().contains("1:10: expected ADDRESS:PORT, or a list"));
    }
}
