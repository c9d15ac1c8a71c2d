package diagnose

// The steps that findings recommend, beside those of packages transport, whose rules they follow, and admission.
const (
	stepSlow   = "find out why it answers slowly: its load, a slow command (SLOWLOG), or a long way from this host"
	stepStart  = "start the server; its log shows why it stopped"
	stepSocket = "start the server, or correct the path of its socket, or who may use it (unixsocket, unixsocketperm)"
	stepReach  = "correct the address, the network between this host and the master, or the limit of this host that " +
		"the error names"
	stepOneServer = "let its name lead to one server only, at all times"
	stepUseTLS    = "the port is one for TLS: use rediss:// instead of redis://"

	stepMaster  = "use the address of its master instead"
	stepPromote = "make it a master again: `REPLICAOF NO ONE`; it votes after its quarantine"
	stepMonitor = "wait a minute; then let its sentinels monitor its master: `SENTINEL REMOVE %s` on %s; then " +
		"`SENTINEL MONITOR %s` on %s; then set the options of the master there again"
	stepProduct = "use Redis 6.2 or Valkey 7.2, or later"
	stepVersion = "use %s %d.%d or later"
	stepNewer   = "nothing: the tests of this library have not run on it yet"
	stepClock   = "let chrony or ntpd correct its clock, slowly and not by a jump"
	stepSetTime = "stop this server, set its clock, and start it after the max TTL has passed: if the clock of a " +
		"running server jumps, its locks can end early"

	stepSet       = "`CONFIG SET %s %s`, and the same in its configuration file"
	stepParameter = "set %s to %s in the parameters of the service, which has no CONFIG"
	stepMemory    = "remove other data there: its machine has no memory for a larger maxmemory than %d"
	stepSnapshot  = "free space on its disk, or fix what its log reports; then `BGSAVE`"
	stepFile      = "free space on its disk, or fix what its log reports; then it continues by itself"
	stepReplicas  = "detach each replica: `REPLICAOF NO ONE` on %s"
	stepRenamed   = "remove rename-command of %s from the server's configuration, and restart it; it votes after its " +
		"quarantine"
	stepDecide = "decide from the parameters of the service: the restart guard is needed unless they are appendonly " +
		"yes, appendfsync always and no-appendfsync-on-rewrite no"
	stepDatabases = "decide on one database, and configure it in all clients; a record that no client uses is deleted " +
		"by `SELECT %d` and `DEL %s`"
	stepForeign       = "keep the other program away from this prefix; then `DEL %s`: it votes after its quarantine"
	stepOtherDatabase = "use that database, by /%d at the end of each URL, unless this is the first client of a new " +
		"deployment"
	stepPersist  = "`PERSIST %s`, and keep the program that gives keys a TTL away from this prefix"
	stepReplaced = "leave the admission record out of backups; flush, restore and swap databases only while no lock is " +
		"held, and restart the server afterwards; if none was held, `CONFIG RESETSTAT` ends this warning"

	stepFailover = "nothing: a failover works this way"
	stepSentinel = "start that sentinel, let it monitor the master, or correct its address or its rights"
	stepDisagree = "wait a minute; then find the sentinel that is cut off, or that monitors another master under the " +
		"same name"
	stepNameAll = "list exactly the sentinels that monitor it in the URL"
	stepQuorum  = "`SENTINEL SET %s quorum %d` on each sentinel"
	stepWait    = "nothing: wait until the replica has synchronized; its log shows the progress"
	stepSilent  = "check the replica's log, and the network between it and the master"
)
