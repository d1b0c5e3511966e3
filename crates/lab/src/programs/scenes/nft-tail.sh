legacy_rules() { at r iptables-nft-restore; }
legacy_rules6() { at r ip6tables-nft-restore; }
save4() { at r iptables-nft-save -c; }
save6() { at r ip6tables-nft-save -c; }
