#!/bin/bash
# Runs mpirun.sh over several hosts that are network namespaces of this machine, each with a host name of its own.
#   fake_hosts.sh [--hosts N] [--rate RATE [--burst SIZE]] [--by-node] OPTIONS OF mpirun.sh... -- PROGRAM ARGUMENTS...
#   fake_hosts.sh [--hosts N] [--rate RATE [--burst SIZE]] -n RANKS --no-mpirun -- PROGRAM ARGUMENTS...
# --rate     speed of each host's link in tc's words, e.g. 1gbit
# --burst    what passes at once after a pause (128kb)
# --by-node  deals the ranks out to the hosts in turn, instead of filling one after the other
# --no-mpirun  starts the program alone, which calls mpirun itself, with the list of hosts in FAKE_HOSTS
# Needs root and network namespaces; returns 77 (skipped) where they cannot be had. Removes what it made.
set -u
here=$(cd "$(dirname "$0")" && pwd)

# Called as mpirun's agent: starts a daemon inside a host.
if [ -n "${PLEXAURA_FAKE_HOSTS:-}" ]; then
  host=$1
  shift
  exec unshare --uts sh -c 'hostname "$0" && exec ip netns exec "$0" sh -c "$*"' "$host" "$@"
fi

hosts=2 rate="" burst=128kb by_node="" no_mpirun="" ranks=1 forwarded=()
while [ "$1" != -- ]; do
  case "$1" in
    --hosts) hosts=$2; shift 2 ;;
    --rate) rate=$2; shift 2 ;;
    --burst) burst=$2; shift 2 ;;
    --by-node) by_node="--map-by node"; shift ;;
    --no-mpirun) no_mpirun=1; shift ;;
    -n) ranks=$2; forwarded+=("$1" "$2"); shift 2 ;;
    *) forwarded+=("$1"); shift ;;
  esac
done

# Names and addresses contain the process id, so that tests may run in parallel.
id=$(($$ % 65000))
bridge=plx$id
network=10.$((id / 250 % 250 + 1)).$((id % 250))

tear_down() {
  for ((i = 0; i < hosts; i++)); do ip netns delete "plx$id-$i" 2> /dev/null; done
  ip link delete "$bridge" 2> /dev/null
}

set_up_host() {
  local name=plx$id-$1
  ip netns add "$name" &&
    ip link add "plx${id}v$1" type veth peer name eth0 netns "$name" &&
    ip link set "plx${id}v$1" master "$bridge" up &&
    ip -n "$name" address add "$network.$(($1 + 1))/24" dev eth0 &&
    ip -n "$name" link set eth0 up &&
    ip -n "$name" link set lo up || return
  [ -z "$rate" ] && return
  ip netns exec "$name" tc qdisc add dev eth0 root tbf rate "$rate" burst "$burst" latency 50ms &&
    tc qdisc add dev "plx${id}v$1" root tbf rate "$rate" burst "$burst" latency 50ms
}

set_up() {
  ip link add "$bridge" type bridge && ip address add "$network.254/24" dev "$bridge" && ip link set "$bridge" up || return
  for ((i = 0; i < hosts; i++)); do set_up_host "$i" || return; done
  unshare --uts true
}

trap tear_down EXIT
if ! reason=$(set_up 2>&1); then
  echo "skipped: no network namespaces here (${reason%%$'\n'*})"
  exit 77
fi

slots=$(((ranks + hosts - 1) / hosts))
list=""
for ((i = 0; i < hosts; i++)); do list+="${list:+,}plx$id-$i:$slots"; done
if [ -n "$no_mpirun" ]; then
  shift
  export OMPI_MCA_plm_rsh_agent=${OMPI_MCA_plm_rsh_agent:-$here/fake_hosts.sh}
  PLEXAURA_FAKE_HOSTS=1 FAKE_HOSTS=$list PRTE_MCA_plm_ssh_agent=$OMPI_MCA_plm_rsh_agent OMPI_MCA_btl=vader,tcp,self \
    OMPI_MCA_oob_tcp_if_include=$network.0/24 OMPI_MCA_btl_tcp_if_include=$network.0/24 "$@"
  exit
fi
options="--mca plm_rsh_agent $here/fake_hosts.sh --host $list $by_node --mca btl vader,tcp,self"
options+=" --mca oob_tcp_if_include $network.0/24 --mca btl_tcp_if_include $network.0/24"
PLEXAURA_FAKE_HOSTS=1 "$here/mpirun.sh" --mpirun "$options" "${forwarded[@]}" "$@"
