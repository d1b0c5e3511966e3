# firewalld's backend of nft: one table inet, zones by interface through goto, policies between them, fib instead of
# rpfilter, logs, chains of their own priority that run after those of others.
# needs: nginx curl dnsmasq dig ping nmap hping3 nft
# one: ext0
