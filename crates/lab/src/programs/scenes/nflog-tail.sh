
# The same rules, with one more at the top of both ways in.
legacy_rules() {
    sed 's/^\(-A PREROUTING -i lan0\)$/-A PREROUTING -j NFLOG --nflog-group 5 --nflog-prefix in\n\1/
         /^-A PREROUTING -i wan0/a-A OUTPUT -j NFLOG --nflog-group 5 --nflog-prefix out' |
        at r iptables-legacy-restore
}
