# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_wakescope_global_optspecs
    string join \n h/help V/version
end

function __fish_wakescope_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_wakescope_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_wakescope_using_subcommand
    set -l cmd (__fish_wakescope_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c wakescope -n "__fish_wakescope_needs_command" -s h -l help -d 'Print help'
complete -c wakescope -n "__fish_wakescope_needs_command" -s V -l version -d 'Print version'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "check" -d 'Show the preemption model with its evidence, and what this machine can measure'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "measure" -d 'Measure wakeup latency, and check whether the numbers can be trusted'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "explain" -d 'Explain late wakeups: which component was late, and what caused it'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "watch" -d 'Watch how long all tasks of this machine wait for a CPU'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "load" -d 'Run loads without measuring, and print how much work they did'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "respond" -d 'Answer each byte of a serial line at once, for `wakescope measure --stimulus line` at its other end'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "report" -d 'Show runs as text, an HTML page, a picture or Markdown, or export them to other programs\' formats'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "import" -d 'Convert results of cyclictest, rtla, jitterdebugger and other programs into runs'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "compare" -d 'Test whether one set of runs is worse than another'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "trend" -d 'Find where p99.9 or the maximum changed in a series of runs'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "lab" -d 'Boot kernels in virtual time, where the same kernel gives the same figures on any machine'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "scope" -d 'Show every section of a guest\'s kernel with interrupts or preemption off'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "predict" -d 'Predict how late wakeups of a guest would be under other preemption models, and what to break up next'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "model" -d 'Simulate a kernel\'s preemption rules, locks and interrupts'
complete -c wakescope -n "__fish_wakescope_using_subcommand check" -l cpu -d 'The CPU to probe [default: the last CPU that this process may use]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand check" -l json -d 'Print JSON: the `host` of a run, with `limitations` and `instruments`'
complete -c wakescope -n "__fish_wakescope_using_subcommand check" -l probe -d 'Also infer the preemption model from behaviour: time wakeups during long system calls on one CPU, for some seconds'
complete -c wakescope -n "__fish_wakescope_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l stimulus -d 'Source of the wakeups' -r -f -a "timer\t'A timer that expires on an absolute grid of CLOCK_MONOTONIC'
timerfd\t'A timerfd on the same grid, by a blocking read'
signal\t'A POSIX timer on the same grid, by a signal handler'
sigwait\t'A POSIX timer on the same grid, by sigwaitinfo'
futex-timeout\t'The time-out of a futex, at points of the same grid'
epoll\t'The time-out of epoll_pwait2, at points of the same grid'
deadline\t'A timer on the same grid, for a SCHED_DEADLINE task'
rtc\t'The periodic interrupt of the real-time clock, as realfeel'
rtc-grid\t'A timer on the grid of a real-time clock\'s rate'
device\t'A timer of the kernel module wakescope, by a blocking read'
futex\t'Another thread, through a futex'
pipe\t'Another thread, through a pipe'
eventfd\t'Another thread, through an eventfd'
socketpair\t'Another thread, through Unix sockets'
udp\t'Another thread, through UDP over the loopback device'
tcp\t'Another thread, through TCP over the loopback device'
mqueue\t'Another thread, through a POSIX message queue'
semaphore\t'Another thread, through a POSIX semaphore'
sysv-semaphore\t'Another thread, through a System V semaphore'
kill\t'Another thread, by a signal that the probe waits for'
condvar\t'Another thread, through a condition variable with PI mutex'
line\t'A byte over a serial line (--line), answered by `wakescope respond`'
audio\t'A virtual sound card that plays what the probe computes'
spin\t'None: a loop reads the clock and counts the gaps'
all\t'All but line and spin, one after the other'"
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l line -d 'Serial line to send over, of --stimulus line; `wakescope respond` answers at its other end. Or CHIP:OUT:IN for edges on lines of a GPIO chip, sent on line OUT and received on line IN' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l baud -d 'Speed of the line in bits per second, the same at both ends [default: 115200]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l between -d 'Waker of the probe, for stimuli with one: another thread of the probe\'s process, another process, or first one and then the other [default: threads]' -r -f -a "threads\t''
processes\t''
both\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l place -d 'Where the waker runs: on the probe\'s CPU, on the next one, or on CPU A for a probe on CPU B; matrix measures all pairs of CPUs, one after the other [default: same-cpu]' -r -f -a "same-cpu\t''
cross-cpu\t''
matrix\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l interval -d 'Time from one timer expiry to the next, on each CPU [default: 1ms]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l rtc-hz -d 'Wakeups per second with --stimulus rtc and rtc-grid, a power of two [default: 2048]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l runtime -d 'With SCHED_DEADLINE (--stimulus deadline or --policy deadline): CPU time to reserve of each interval [default: half of it]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l gap-from -d 'With --stimulus spin: length from which a gap counts [default: 1us]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l pcm -d 'With --stimulus audio: play on this sound card, as hw:0,0, instead of a virtual one' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l fragment -d 'With --stimulus audio: time that the sound card plays a fragment [default: 2900us]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l fragments -d 'With --stimulus audio: number of fragments in the card\'s buffer [default: 3]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l share -d 'With --stimulus audio: share of a fragment\'s time that computing it takes [default: 80%]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l duration -d 'How long to measure, as in 10s or 5min' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l samples -d 'Number of wakeups to measure on each CPU, instead of --duration' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l cpus -d 'CPUs to measure, as in 0,2-3 [default: all that this process may use; the first of them for audio, rtc and line]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l policy -d 'Scheduling policy of the probe [default: fifo, or other where fifo is not allowed; other for spin; deadline for deadline]' -r -f -a "other\t''
fifo\t''
rr\t''
deadline\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l priority -d 'Real-time priority, 1 to 99 [default: 90]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l load -d 'Loads to run while measuring, with commas between them; `wakescope load --list` lists them' -r -f -a "find\t''
launch\t''
file-move\t''
cpu\t''
fifos-mmap\t''
p3-fpu\t''
fs\t''
crashme\t''
fork\t''
memory\t''
sync\t''
truncate\t''
nfs-compile\t''
ttcp\t''
network\t''
hackbench\t''
interrupts\t''
serial-pty\t''
printk\t''
dbench\t''
stress-kernel\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l load-dir -d 'Directory for the loads\' files [default: $TMPDIR or /tmp]' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l warmup -d 'Warm-up: the load runs alone for this time, then the probe runs unrecorded for the same time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l idle-states -d 'Leave idle states as they are, or keep CPUs in the shallowest one while measuring' -r -f -a "as-is\t''
shallow\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l worst -d 'Number of the most delayed wakeups to list in the record' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l fail-above -d 'Exit with 1 if the maximum (100us) or a percentile (p99.9=50us) is above this time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l out -d 'Folder to write the run to [default: a new folder under runs/]' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l seed -d 'Seed for the phase of the timer grid and for the contents of the loads\' files' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l json -d 'Print the run record to standard output instead of the report'
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l save-samples -d 'Write every sample to samples.csv in the run\'s folder'
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l redact -d 'Leave names of tasks, programs, files and cgroups out of the record, so that it can be published; see docs/privacy.md'
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l above -d 'Wakeups count as late from this time or percentile on' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l pid -d 'Follow the threads of this process, or this one thread, instead of probes' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l comm -d 'Follow all threads of this name' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l cgroup -d 'Follow all threads in the cgroup with this folder, but not in its descendants' -r -f -a "(__fish_complete_directories)"
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l vmlinux -d 'The kernel\'s vmlinux with debug information, for source lines [default: searched in the usual places]' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l by -d 'Also rank the late time by threads, tasks, functions or modules, whatever the cause' -r -f -a "pid\t''
task\t''
function\t''
module\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l episodes -d 'Number of the worst wakeups to show in full' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l stimulus -d 'Source of the wakeups' -r -f -a "timer\t'A timer that expires on an absolute grid of CLOCK_MONOTONIC'
timerfd\t'A timerfd on the same grid, by a blocking read'
signal\t'A POSIX timer on the same grid, by a signal handler'
sigwait\t'A POSIX timer on the same grid, by sigwaitinfo'
futex-timeout\t'The time-out of a futex, at points of the same grid'
epoll\t'The time-out of epoll_pwait2, at points of the same grid'
deadline\t'A timer on the same grid, for a SCHED_DEADLINE task'
rtc\t'The periodic interrupt of the real-time clock, as realfeel'
rtc-grid\t'A timer on the grid of a real-time clock\'s rate'
device\t'A timer of the kernel module wakescope, by a blocking read'
futex\t'Another thread, through a futex'
pipe\t'Another thread, through a pipe'
eventfd\t'Another thread, through an eventfd'
socketpair\t'Another thread, through Unix sockets'
udp\t'Another thread, through UDP over the loopback device'
tcp\t'Another thread, through TCP over the loopback device'
mqueue\t'Another thread, through a POSIX message queue'
semaphore\t'Another thread, through a POSIX semaphore'
sysv-semaphore\t'Another thread, through a System V semaphore'
kill\t'Another thread, by a signal that the probe waits for'
condvar\t'Another thread, through a condition variable with PI mutex'
line\t'A byte over a serial line (--line), answered by `wakescope respond`'
audio\t'A virtual sound card that plays what the probe computes'
spin\t'None: a loop reads the clock and counts the gaps'
all\t'All but line and spin, one after the other'"
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l line -d 'Serial line to send over, of --stimulus line; `wakescope respond` answers at its other end. Or CHIP:OUT:IN for edges on lines of a GPIO chip, sent on line OUT and received on line IN' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l baud -d 'Speed of the line in bits per second, the same at both ends [default: 115200]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l between -d 'Waker of the probe, for stimuli with one: another thread of the probe\'s process, another process, or first one and then the other [default: threads]' -r -f -a "threads\t''
processes\t''
both\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l place -d 'Where the waker runs: on the probe\'s CPU, on the next one, or on CPU A for a probe on CPU B; matrix measures all pairs of CPUs, one after the other [default: same-cpu]' -r -f -a "same-cpu\t''
cross-cpu\t''
matrix\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l interval -d 'Time from one timer expiry to the next, on each CPU [default: 1ms]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l rtc-hz -d 'Wakeups per second with --stimulus rtc and rtc-grid, a power of two [default: 2048]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l runtime -d 'With SCHED_DEADLINE (--stimulus deadline or --policy deadline): CPU time to reserve of each interval [default: half of it]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l gap-from -d 'With --stimulus spin: length from which a gap counts [default: 1us]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l pcm -d 'With --stimulus audio: play on this sound card, as hw:0,0, instead of a virtual one' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l fragment -d 'With --stimulus audio: time that the sound card plays a fragment [default: 2900us]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l fragments -d 'With --stimulus audio: number of fragments in the card\'s buffer [default: 3]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l share -d 'With --stimulus audio: share of a fragment\'s time that computing it takes [default: 80%]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l duration -d 'How long to measure, as in 10s or 5min' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l samples -d 'Number of wakeups to measure on each CPU, instead of --duration' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l cpus -d 'CPUs to measure, as in 0,2-3 [default: all that this process may use; the first of them for audio, rtc and line]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l policy -d 'Scheduling policy of the probe [default: fifo, or other where fifo is not allowed; other for spin; deadline for deadline]' -r -f -a "other\t''
fifo\t''
rr\t''
deadline\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l priority -d 'Real-time priority, 1 to 99 [default: 90]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l load -d 'Loads to run while measuring, with commas between them; `wakescope load --list` lists them' -r -f -a "find\t''
launch\t''
file-move\t''
cpu\t''
fifos-mmap\t''
p3-fpu\t''
fs\t''
crashme\t''
fork\t''
memory\t''
sync\t''
truncate\t''
nfs-compile\t''
ttcp\t''
network\t''
hackbench\t''
interrupts\t''
serial-pty\t''
printk\t''
dbench\t''
stress-kernel\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l load-dir -d 'Directory for the loads\' files [default: $TMPDIR or /tmp]' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l warmup -d 'Warm-up: the load runs alone for this time, then the probe runs unrecorded for the same time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l idle-states -d 'Leave idle states as they are, or keep CPUs in the shallowest one while measuring' -r -f -a "as-is\t''
shallow\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l worst -d 'Number of the most delayed wakeups to list in the record' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l fail-above -d 'Exit with 1 if the maximum (100us) or a percentile (p99.9=50us) is above this time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l out -d 'Folder to write the run to [default: a new folder under runs/]' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l seed -d 'Seed for the phase of the timer grid and for the contents of the loads\' files' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l bound -d 'Compute an upper bound on the wakeup latency from what was observed'
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l sections -d 'Measure every section with interrupts or preemption off, from its begin to its end'
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l as-recorded -d 'Show the stored explanation as it was recorded, instead of attributing the stored episodes anew'
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l json -d 'Print the run record to standard output instead of the report'
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l save-samples -d 'Write every sample to samples.csv in the run\'s folder'
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l redact -d 'Leave names of tasks, programs, files and cgroups out of the record, so that it can be published; see docs/privacy.md'
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l duration -d 'How long to watch, as in 10s or 5min [default: until Ctrl-C]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l interval -d 'How often to show what was counted since the last time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l by -d 'Rows of a table: tasks of one name in one cgroup, of one name, of one cgroup, or a CPU' -r -f -a "series\t'Tasks of one name in one cgroup'
comm\t'Tasks of one name'
cgroup\t'Tasks of one cgroup'
cpu\t'The CPU on which the waits ended'"
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l sort -d 'Order of the rows: by the longest wait, the 99.9th percentile, or the sum of all waits' -r -f -a "max\t'The longest wait'
p99.9\t'The 99.9th percentile; too few waits come last'
time\t'The sum of all waits'"
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l rows -d 'The most rows of a table; one that is redrawn has at most 14. The live view has as many as fit' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l series -d 'The most series (tasks of one name in one cgroup) that are counted separately; each takes 3.5 KB of the kernel\'s memory' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l explain -d 'Follow tasks that wait repeatedly for about 1 ms or longer with the tracer of `wakescope explain` [or for about this TIME, 17s at most], for 3 s, and show what caused it' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l budget -d 'The share of all CPU time that watching and --explain may take; what a minute allows can be used at once' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l out -d 'Store windows in this folder: a file for each hour, a line of JSON for each window' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l keep -d 'Disk space that stored windows may use, as in 500MB or 2GB: the oldest files are removed' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l merge -d 'Intervals are added up to windows of this length before they are stored' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l listen -d 'Let Prometheus fetch the figures at http://ADDRESS/metrics [default ADDRESS: 127.0.0.1:9464]. Anybody who can connect to it can read the names of tasks and cgroups' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l otlp -d 'Send the figures to a collector of OpenTelemetry, as JSON over HTTP: http://127.0.0.1:4318. It gets the name of this machine and those of tasks and cgroups' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l otlp-every -d 'How often to send the figures' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l export-by -d 'Export a histogram for each cgroup, or for the tasks of one name in one cgroup' -r -f -a "cgroup\t'Each cgroup'
series\t'Tasks of one name in one cgroup'"
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l export-series -d 'The most histograms to export; all further waits share one' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l replay -d 'Show the windows that are stored in this folder, on a terminal one by one; with --once only their sum' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l since -d 'Of stored windows, those that began at this time or later, as in 2026-11-21T01:00:00Z' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l until -d 'Of stored windows, those that ended by this time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l once -d 'Watch for one interval, and print its table'
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l json -d 'Print a line of JSON for each interval, with all series: docs/reference/watch.schema.json'
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l audit -d 'Compare what is counted of each task with the kernel\'s own counts, to the nanosecond'
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -l redact -d 'Leave out names of tasks and cgroups where windows are stored or replayed, not where they are exported'
complete -c wakescope -n "__fish_wakescope_using_subcommand watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -l duration -d 'How long to run, as in 10s or 5min (default: until Ctrl-C)' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -l dir -d 'Directory for the loads\' files, which are removed at the end (default: $TMPDIR, or /tmp)' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -l seed -d 'Seed for the names and contents of the files' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -l json -d 'Print the result as JSON'
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -l list -d 'List the loads'
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -s h -l help -d 'Print help'
complete -c wakescope -n "__fish_wakescope_using_subcommand respond" -l baud -d 'Speed of the line in bits per second, the same at both ends [default: 115200]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand respond" -l priority -d 'Real-time priority of the thread that answers, 1 to 99 [default: 90, or none where that is not allowed]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand respond" -l cpu -d 'CPU to bind that thread to [default: any]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand respond" -l pty -d 'Make a pseudoterminal and answer on it, for a sender on this machine'
complete -c wakescope -n "__fish_wakescope_using_subcommand respond" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l format -d 'Output format [default: by the ending of -o FILE, else text]' -r -f -a "text\t'For people: verdict, table, findings, histogram'
html\t'A page in one file, with pictures, tables, and exact values at the pointer'
svg\t'One picture, for papers and slides'
png\t'The same picture as pixels'
md\t'A table and the findings as Markdown, for a pull request'
json\t'The run record'
realfeel\t'The block of Clark Williams\' paper of 2002: statistics, shares below thresholds, p99.999'
cyclictest\t'The histogram that cyclictest prints, in whole µs'
cyclictest-json\t'The file that cyclictest writes with --json'
csv\t'The complete histograms as comma-separated values'
hlog\t'HdrHistogram\'s interval log, compressed, one tag per CPU'
hgrm\t'HdrHistogram\'s percentile distribution over all CPUs'
prometheus\t'A classic histogram for Prometheus'
openmetrics\t'The same as OpenMetrics'
jsonl\t'Every sample as a JSON object on its own line, for runs measured with --save-samples'
trace\t'The latest wakeups as a trace for Perfetto (ui.perfetto.dev) or about:tracing'"
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l picture -d 'The picture for --format svg or png: exceedance, histogram, cpus, course, audio, components, causes, episodes, matrix [default: exceedance]' -r -f -a "exceedance\t''
histogram\t''
cpus\t''
course\t''
audio\t''
components\t''
causes\t''
episodes\t''
matrix\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l line -d 'Draw lines at these times, in addition to the runs\' limits' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l title -d 'Title of the report' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l thresholds -d 'Thresholds for --format realfeel [default: those of 2002, 0.1 ms to 100 ms]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l unit -d 'Unit of the values in other programs\' files that do not state one' -r -f -a "ns\t'Nanoseconds'
us\t'Microseconds'
ms\t'Milliseconds'"
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l distribution -d 'Values to export: one per wakeup or one per expiry [default: woken for the formats of cyclictest, both for csv, expiries for the others]' -r -f -a "woken\t'One value per wakeup'
expiries\t'One value per expiry, including expiries that a late wakeup missed'"
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l rows -d 'Rows of cyclictest\'s histogram, one per µs; later samples count as overflow [default: as many as the maximum needs, at most 1000000]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -s o -l output -d 'Write to a file instead of standard output' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l redact -d 'Leave out names of tasks, programs, files and cgroups, so that the result can be published'
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l mix-quantities -d 'Show different quantities together, such as gaps in a busy loop and wakeup latencies'
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l sparse -d 'Omit empty rows of cyclictest\'s histogram, as rt-tests 2.7 and later do'
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand import" -l from -d 'Format of the files, where it cannot be detected' -r -f -a "cyclictest\t''
cyclictest-verbose\t''
cyclictest-json\t''
jitterdebugger\t''
jitterdebugger-raw\t''
rtla-timerlat\t''
rtla-osnoise\t''
oslat\t''
oslat-json\t''
rteval\t''
schbench\t''
stress-ng\t''
realfeel\t''
hlog\t''
hgrm\t''
perf-sched\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand import" -l unit -d 'Unit of the values in other programs\' files that do not state one' -r -f -a "ns\t'Nanoseconds'
us\t'Microseconds'
ms\t'Milliseconds'"
complete -c wakescope -n "__fish_wakescope_using_subcommand import" -l out -d 'The run\'s folder; for several runs, the parent of their folders [default: under runs/]' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand import" -l redact -d 'Leave names of tasks, programs, files and cgroups out of the runs, so that they can be published; see docs/privacy.md'
complete -c wakescope -n "__fish_wakescope_using_subcommand import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l against -d 'The old runs' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l interleave-plan -d 'Instead of comparing, print a script that measures N runs a side alternately' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l margin -d 'Smallest relative difference that counts [default: 10%]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l alpha -d 'Significance level: the accepted probability of a false "better", "worse" or failed --max-regression [default: 5%]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l max-regression -d 'Exit with 1 only if a figure is significantly worse by more than this, as in 10%, with 3 if that is inconclusive' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l fail-above -d 'Exit with 1 if a new run\'s maximum (100us) or percentile (p99.9=50us) is above this time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l by -d 'Of watches: how waits of both sides are matched [default: series]' -r -f -a "series\t'Tasks of one name in one cgroup'
comm\t'Tasks of one name'
cgroup\t'Tasks of one cgroup'
none\t'Only all waits together'"
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l unit -d 'Unit of the values in other programs\' files that do not state one' -r -f -a "ns\t'Nanoseconds'
us\t'Microseconds'
ms\t'Milliseconds'"
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l seed -d 'Seed for the random permutations of the test, or for --interleave-plan' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l format -d 'Output format [default: by the ending of -o FILE, else text]' -r -f -a "text\t'For people: verdict, table, reasons'
json\t'The record of the comparison'
junit\t'For CI systems: one test case per figure and per limit'
markdown\t'For pull requests'"
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -s o -l output -d 'Write to a file instead of standard output' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l accept-blocks -d 'Give a verdict even if one side was measured entirely after the other'
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l force -d 'Compare runs although they differ in load, stimulus or another essential property'
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l mix-quantities -d 'Compare different quantities, such as gaps in a busy loop with wakeup latencies'
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l json -d 'The same as --format json'
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand trend" -l alpha -d 'Significance level: the accepted probability of a false change [default: 5%]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand trend" -l unit -d 'Unit of the values in other programs\' files that do not state one' -r -f -a "ns\t'Nanoseconds'
us\t'Microseconds'
ms\t'Milliseconds'"
complete -c wakescope -n "__fish_wakescope_using_subcommand trend" -l seed -d 'Seed for the random permutations of the test' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand trend" -s o -l output -d 'Write to a file instead of standard output: a picture to .svg or .png, the record to .json' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand trend" -l by-time -d 'Order the runs by their start time'
complete -c wakescope -n "__fish_wakescope_using_subcommand trend" -l force -d 'Accept runs although they differ in load, stimulus or another essential property'
complete -c wakescope -n "__fish_wakescope_using_subcommand trend" -l json -d 'Print JSON: the record of the series'
complete -c wakescope -n "__fish_wakescope_using_subcommand trend" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch image module run verify bisect prune" -s h -l help -d 'Print help'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch image module run verify bisect prune" -f -a "kernels" -d 'List the kernels that can be fetched, and the fetched ones'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch image module run verify bisect prune" -f -a "fetch" -d 'Fetch kernels from Debian\'s archive, and the emulator, for use by the lab only'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch image module run verify bisect prune" -f -a "image" -d 'Make an image of Debian packages, which gives guests programs beside wakescope'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch image module run verify bisect prune" -f -a "module" -d 'Build the kernel module `wakescope` for kernels of Debian\'s archive'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch image module run verify bisect prune" -f -a "run" -d 'Run kernels × preemption models × loads × seeds in virtual time, and compare them'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch image module run verify bisect prune" -f -a "verify" -d 'Repeat cached cells, and fail if a bit differs'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch image module run verify bisect prune" -f -a "bisect" -d 'Find the first kernel of an ordered list that exceeds a limit'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch image module run verify bisect prune" -f -a "prune" -d 'Shrink the cache: remove the least recently used cells'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from kernels" -l arch -d 'Architecture of Debian\'s kernels: amd64 or arm64 (default: this machine\'s)' -r -f -a "amd64\t''
arm64\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from kernels" -l all -d 'List every version, not just the newest of each series and flavour'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from kernels" -l refresh -d 'Update the list of kernels, even if it was updated today'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from kernels" -l json -d 'Print the list as JSON'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from kernels" -s h -l help -d 'Print help'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from fetch" -l arch -d 'Architecture of Debian\'s kernels: amd64 or arm64 (default: this machine\'s)' -r -f -a "amd64\t''
arm64\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from fetch" -l refresh -d 'Update the list of kernels, even if it was updated today'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from fetch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from image" -l arch -d 'Architecture of Debian\'s kernels: amd64 or arm64 (default: this machine\'s)' -r -f -a "amd64\t''
arm64\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from image" -l refresh -d 'Look for newer packages. Cells that were run with the old image are then no longer repeatable'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from image" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from module" -l arch -d 'Architecture of Debian\'s kernels: amd64 or arm64 (default: this machine\'s)' -r -f -a "amd64\t''
arm64\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from module" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l plan -d 'A built-in plan (williams, linux-journal, debian-atlas), or a plan file' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l kernel -d 'Kernels by name, as in 6.1-cloud (see `wakescope lab kernels`), or by file, as in old/bzImage' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l preempt -d 'Preemption models to boot each kernel with: none, voluntary, full, lazy, rt, default' -r -f -a "none\t''
voluntary\t''
full\t''
lazy\t''
rt\t''
default\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l load -d 'Loads: idle, or names that `wakescope load --list` lists; a combination as find+launch' -r -f -a "idle\t''
find\t''
launch\t''
file-move\t''
cpu\t''
fifos-mmap\t''
p3-fpu\t''
fs\t''
crashme\t''
fork\t''
memory\t''
sync\t''
truncate\t''
nfs-compile\t''
ttcp\t''
network\t''
hackbench\t''
interrupts\t''
serial-pty\t''
printk\t''
dbench\t''
stress-kernel\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l seeds -d 'Number of seeds, as in 10, or a list, as in 3,7,11. A seed sets the probe\'s phase and the loads\' contents' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l samples -d 'Wakeups per cell' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l stimulus -d 'Source of the wakeups' -r -f -a "timer\t'A timer that expires on an absolute grid of CLOCK_MONOTONIC'
timerfd\t'A timerfd on the same grid, by a blocking read'
signal\t'A POSIX timer on the same grid, by a signal handler'
sigwait\t'A POSIX timer on the same grid, by sigwaitinfo'
futex-timeout\t'The time-out of a futex, at points of the same grid'
epoll\t'The time-out of epoll_pwait2, at points of the same grid'
deadline\t'A timer on the same grid, for a SCHED_DEADLINE task'
rtc\t'The periodic interrupt of the real-time clock, as realfeel'
rtc-grid\t'A timer on the grid of a real-time clock\'s rate'
device\t'A timer of the kernel module wakescope, by a blocking read'
futex\t'Another thread, through a futex'
pipe\t'Another thread, through a pipe'
eventfd\t'Another thread, through an eventfd'
socketpair\t'Another thread, through Unix sockets'
udp\t'Another thread, through UDP over the loopback device'
tcp\t'Another thread, through TCP over the loopback device'
mqueue\t'Another thread, through a POSIX message queue'
semaphore\t'Another thread, through a POSIX semaphore'
sysv-semaphore\t'Another thread, through a System V semaphore'
kill\t'Another thread, by a signal that the probe waits for'
condvar\t'Another thread, through a condition variable with PI mutex'
line\t'A byte over a serial line (--line), answered by `wakescope respond`'
audio\t'A virtual sound card that plays what the probe computes'
spin\t'None: a loop reads the clock and counts the gaps'"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l between -d 'Waker of the probe, for stimuli with one: another thread of the probe\'s process, or another process' -r -f -a "threads\t''
processes\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l interval -d 'Time from one timer expiry to the next, in virtual time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l rtc-hz -d 'Wakeups per virtual second with --stimulus rtc and rtc-grid, a power of two [default: 2048]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l warmup -d 'Warm-up in virtual time: the load runs alone for this time, then the probe runs unrecorded for the same time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l cpu-mips -d 'Speed of the guest\'s CPU, in million instructions per virtual second: 1000, 500, 250, 125' -r -f -a "1000\t''
500\t''
250\t''
125\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l policy -d 'Scheduling policy of the probe' -r -f -a "fifo\t''
rr\t''
other\t''
deadline\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l priority -d 'Real-time priority of the probe, 1 to 99' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l compare -d 'Test whether B is worse than A: kernels, models or both, as in none:full or old/bzImage:new/bzImage' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l margin -d 'Smallest relative difference that counts: 10% or 0.1' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l fail-above -d 'Exit with 1 if the maximum (100us) or a percentile (p99.9=50us) of any cell is above this time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l above -d 'With --explain, wakeups count as late from this time or percentile on' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l worst -d 'Number of the most delayed wakeups to list in each record' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l arch -d 'Architecture of Debian\'s kernels: amd64 or arm64 (default: this machine\'s)' -r -f -a "amd64\t''
arm64\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l config -d 'Configuration of a kernel given by file, if it is not config-RELEASE beside it. Repeat the option in the order of the kernels' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l modules -d 'Modules of a kernel given by file: the equivalent of /lib/modules/RELEASE, or the INSTALL_MOD_PATH' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l module -d 'Modules that guests load before measuring, together with their dependencies' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l packages -d 'Debian packages to give to guests with their dependencies, for loads that need programs: see `wakescope lab image`' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l append -d 'Text to append to the kernel command line, as in \'nohz=off threadirqs\'' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l qemu -d 'The emulator, QEMU 8 or newer (default: the fetched one, else the installed one)' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l guest-program -d 'The guest\'s program, a static wakescope for the kernels\' architecture (default: the wakescope-guest of this wakescope)' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l jobs -d 'Number of guests to run in parallel (default: one per CPU)' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l timeout -d 'Host time after which a guest is stopped' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l cpus -d 'CPUs of a guest; more than one needs --experimental-smp' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l explain -d 'Let each guest explain its late wakeups. Tracing takes virtual time: do not compare the figures with those of guests without --explain'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l sections -d 'With --explain, also measure every section with interrupts or preemption off, on kernels with preemptirq tracepoints'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l bound -d 'With --explain, also compute an upper bound on the wakeup latency, shown beside the maximum'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l experimental-smp -d 'Allow more than one CPU. The emulator runs them in turns of about a millisecond, which dominates the figures'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l scope -d 'Then run the cell with the latest wakeup of each kernel and model once more with `wakescope scope`, and show its longest sections with interrupts or preemption off. Takes about as long as these cells took, and a boot per kernel'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l all-figures -d 'Show p99.9 and p50 beside the maximum, even if the table is wider than the screen'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l json -d 'Print JSON: the record of the lab'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l markdown -d 'Print Markdown, with all figures'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from verify" -l at-most -d 'Run at most this many cells, spread evenly over all' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from verify" -l jobs -d 'Number of guests to run in parallel (default: one per CPU)' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from verify" -l qemu -d 'The emulator, QEMU 8 or newer (default: the fetched one, else the installed one)' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from verify" -l timeout -d 'Host time after which a guest is stopped' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l plan -d 'A built-in plan (williams, linux-journal, debian-atlas), or a plan file' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l kernel -d 'Kernels by name, as in 6.1-cloud (see `wakescope lab kernels`), or by file, as in old/bzImage' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l preempt -d 'Preemption models to boot each kernel with: none, voluntary, full, lazy, rt, default' -r -f -a "none\t''
voluntary\t''
full\t''
lazy\t''
rt\t''
default\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l load -d 'Loads: idle, or names that `wakescope load --list` lists; a combination as find+launch' -r -f -a "idle\t''
find\t''
launch\t''
file-move\t''
cpu\t''
fifos-mmap\t''
p3-fpu\t''
fs\t''
crashme\t''
fork\t''
memory\t''
sync\t''
truncate\t''
nfs-compile\t''
ttcp\t''
network\t''
hackbench\t''
interrupts\t''
serial-pty\t''
printk\t''
dbench\t''
stress-kernel\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l seeds -d 'Number of seeds, as in 10, or a list, as in 3,7,11. A seed sets the probe\'s phase and the loads\' contents' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l samples -d 'Wakeups per cell' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l stimulus -d 'Source of the wakeups' -r -f -a "timer\t'A timer that expires on an absolute grid of CLOCK_MONOTONIC'
timerfd\t'A timerfd on the same grid, by a blocking read'
signal\t'A POSIX timer on the same grid, by a signal handler'
sigwait\t'A POSIX timer on the same grid, by sigwaitinfo'
futex-timeout\t'The time-out of a futex, at points of the same grid'
epoll\t'The time-out of epoll_pwait2, at points of the same grid'
deadline\t'A timer on the same grid, for a SCHED_DEADLINE task'
rtc\t'The periodic interrupt of the real-time clock, as realfeel'
rtc-grid\t'A timer on the grid of a real-time clock\'s rate'
device\t'A timer of the kernel module wakescope, by a blocking read'
futex\t'Another thread, through a futex'
pipe\t'Another thread, through a pipe'
eventfd\t'Another thread, through an eventfd'
socketpair\t'Another thread, through Unix sockets'
udp\t'Another thread, through UDP over the loopback device'
tcp\t'Another thread, through TCP over the loopback device'
mqueue\t'Another thread, through a POSIX message queue'
semaphore\t'Another thread, through a POSIX semaphore'
sysv-semaphore\t'Another thread, through a System V semaphore'
kill\t'Another thread, by a signal that the probe waits for'
condvar\t'Another thread, through a condition variable with PI mutex'
line\t'A byte over a serial line (--line), answered by `wakescope respond`'
audio\t'A virtual sound card that plays what the probe computes'
spin\t'None: a loop reads the clock and counts the gaps'"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l between -d 'Waker of the probe, for stimuli with one: another thread of the probe\'s process, or another process' -r -f -a "threads\t''
processes\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l interval -d 'Time from one timer expiry to the next, in virtual time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l rtc-hz -d 'Wakeups per virtual second with --stimulus rtc and rtc-grid, a power of two [default: 2048]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l warmup -d 'Warm-up in virtual time: the load runs alone for this time, then the probe runs unrecorded for the same time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l cpu-mips -d 'Speed of the guest\'s CPU, in million instructions per virtual second: 1000, 500, 250, 125' -r -f -a "1000\t''
500\t''
250\t''
125\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l policy -d 'Scheduling policy of the probe' -r -f -a "fifo\t''
rr\t''
other\t''
deadline\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l priority -d 'Real-time priority of the probe, 1 to 99' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l compare -d 'Test whether B is worse than A: kernels, models or both, as in none:full or old/bzImage:new/bzImage' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l margin -d 'Smallest relative difference that counts: 10% or 0.1' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l fail-above -d 'Exit with 1 if the maximum (100us) or a percentile (p99.9=50us) of any cell is above this time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l above -d 'With --explain, wakeups count as late from this time or percentile on' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l worst -d 'Number of the most delayed wakeups to list in each record' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l arch -d 'Architecture of Debian\'s kernels: amd64 or arm64 (default: this machine\'s)' -r -f -a "amd64\t''
arm64\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l config -d 'Configuration of a kernel given by file, if it is not config-RELEASE beside it. Repeat the option in the order of the kernels' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l modules -d 'Modules of a kernel given by file: the equivalent of /lib/modules/RELEASE, or the INSTALL_MOD_PATH' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l module -d 'Modules that guests load before measuring, together with their dependencies' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l packages -d 'Debian packages to give to guests with their dependencies, for loads that need programs: see `wakescope lab image`' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l append -d 'Text to append to the kernel command line, as in \'nohz=off threadirqs\'' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l qemu -d 'The emulator, QEMU 8 or newer (default: the fetched one, else the installed one)' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l guest-program -d 'The guest\'s program, a static wakescope for the kernels\' architecture (default: the wakescope-guest of this wakescope)' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l jobs -d 'Number of guests to run in parallel (default: one per CPU)' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l timeout -d 'Host time after which a guest is stopped' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l cpus -d 'CPUs of a guest; more than one needs --experimental-smp' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l repo -d 'Git repository: bisect its revisions instead of a list of kernels' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l good -d 'A revision that keeps the limit' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l bad -d 'A later revision that exceeds the limit' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l build -d 'Shell command that checks out and builds $REVISION, run in the repository. If it fails or exits with 125, the revision is skipped' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l image -d 'Path of the built kernel image, relative to the repository' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l explain -d 'Let each guest explain its late wakeups. Tracing takes virtual time: do not compare the figures with those of guests without --explain'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l sections -d 'With --explain, also measure every section with interrupts or preemption off, on kernels with preemptirq tracepoints'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l bound -d 'With --explain, also compute an upper bound on the wakeup latency, shown beside the maximum'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l experimental-smp -d 'Allow more than one CPU. The emulator runs them in turns of about a millisecond, which dominates the figures'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l json -d 'Print JSON'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from prune" -l keep -d 'Disk space that cells may use: 500MB, 2GB; 0 removes all' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from prune" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand scope" -l rows -d 'Rows to show of each kind' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand scope" -l above -d 'Length from which on the record lists single sections, in virtual time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand scope" -l episodes -d 'Number of the latest wakeups to explain from what the emulator saw; 0: none' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand scope" -l trace -d 'Also write these wakeups as a trace for Perfetto and Chrome\'s about:tracing: interrupts off, preemption off, interrupts, softirqs, tasks and, with --locks, locks side by side. Both open compressed ones, too: FILE.json.gz' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand scope" -s o -l output -d 'Write to a file instead of standard output: the record to .json, a page with flame graphs to .html' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand scope" -l qemu -d 'The emulator that the cell was run by (default: the fetched one, else the installed one)' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand scope" -l timeout -d 'Host time after which the guest is stopped' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand scope" -l functions -d 'Also show in which functions the time of these sections went'
complete -c wakescope -n "__fish_wakescope_using_subcommand scope" -l locks -d 'Also show which locks were held longest, by whom they were taken and released, and how long others waited for them'
complete -c wakescope -n "__fish_wakescope_using_subcommand scope" -l json -d 'Print JSON: the record of all sections'
complete -c wakescope -n "__fish_wakescope_using_subcommand scope" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand predict" -l break -d 'As if a function let go of the CPU after this time: where its sections with interrupts or preemption off last longer, and where it could ask whether somebody else is to run' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand predict" -l limit-sections -d 'As if no section with interrupts or preemption off lasted longer' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand predict" -l every -d 'The longest that a function keeps the CPU once it is broken up, for the ranking' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand predict" -s o -l output -d 'Write to a file instead of standard output; the record to .json' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand predict" -l qemu -d 'The emulator that the cell was run by (default: the fetched one, else the installed one)' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand predict" -l timeout -d 'Host time after which the guest is stopped' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand predict" -l json -d 'Print JSON: the record of the prediction'
complete -c wakescope -n "__fish_wakescope_using_subcommand predict" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and not __fish_seen_subcommand_from run check list show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and not __fish_seen_subcommand_from run check list show" -f -a "run" -d 'Simulate a scenario under preemption models, and show how late its probes wake'
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and not __fish_seen_subcommand_from run check list show" -f -a "check" -d 'Try every order of events in a scenario, and look for a broken rule'
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and not __fish_seen_subcommand_from run check list show" -f -a "list" -d 'List the scenarios that come with wakescope'
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and not __fish_seen_subcommand_from run check list show" -f -a "show" -d 'Print the file of a scenario, as a start for one of your own'
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from run" -l preempt -d 'Preemption models: none, voluntary, full, both, lazy, rt [default: all of them]' -r -f -a "none\t''
voluntary\t''
full\t''
both\t''
lazy\t''
rt\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from run" -l seeds -d 'Number of simulations of each model, each with a seed of its own' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from run" -l seed -d 'The first seed. A seed sets the probes\' phases and all that is drawn at random' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from run" -l samples -d 'Wakeups of all probes together in each simulation' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from run" -l jobs -d 'Simulations that run at a time [default: one for each CPU]. The figures do not depend on it' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from run" -l out -d 'Folder of the run records [default: one named after the time, under runs/]' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from run" -l timeline -d 'Draw the latest wakeup of each model, or its Nth latest: what each CPU was at, and who held which lock. Below the table, or with -o into a file' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from run" -s o -d 'Draw into a file: the wakeups to .svg or .png, or all to a page, .html. Implies --timeline' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from run" -l no-explain -d 'Do not explain the latest wakeups, which takes two thirds of the time'
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from run" -l json -d 'Print JSON: all figures'
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from check" -l preempt -d 'Preemption models: none, voluntary, full, both, lazy, rt [default: all of them]' -r -f -a "none\t''
voluntary\t''
full\t''
both\t''
lazy\t''
rt\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from check" -l states -d 'The most states to look at; random schedules follow if there are more' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from check" -l seed -d 'Seed of the random schedules' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c wakescope -n "__fish_wakescope_using_subcommand model; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
