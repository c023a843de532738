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
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "check" -d 'What kernel and machine is this: preemption model with evidence, and what can be measured here'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "measure" -d 'How late are wakeups here, and can the number be trusted'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "explain" -d 'Why were wakeups late: which part of the way, and whose fault'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "load" -d 'Run loads by themselves, until Ctrl-C or for a while, and tell how much work they did'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "report" -d 'Show runs: as text, a page, a picture, Markdown, the record itself, or in other programs\' formats'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "import" -d 'Make runs of what cyclictest, rtla, jitterdebugger and others have measured'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "compare" -d 'Is one set of runs worse than another: verdict, size, certainty'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "trend" -d 'Where in a series of runs did p99.9 or the maximum change'
complete -c wakescope -n "__fish_wakescope_needs_command" -f -a "lab" -d 'Boot kernels in virtual time, where the same kernel gives the same figures on any machine'
complete -c wakescope -n "__fish_wakescope_using_subcommand check" -l cpu -d 'The CPU to probe [default: the last that this process may use]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand check" -l json -d 'Print JSON: the `host` of a run, with `suffers` and `instruments`'
complete -c wakescope -n "__fish_wakescope_using_subcommand check" -l probe -d 'Also tell the preemption model from behaviour: time wakeups inside long system calls, for some seconds, on one CPU'
complete -c wakescope -n "__fish_wakescope_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l stimulus -d 'What causes the wakeups' -r -f -a "timer\t'A timer on an absolute grid of CLOCK_MONOTONIC'"
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l interval -d 'Period of the grid of wakeups' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l duration -d 'How long to measure' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l samples -d 'Measure this many wakeups on each CPU, instead of for a time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l cpus -d 'CPUs to measure, as in 0,2-3 [default: all that this process may use]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l policy -d 'Scheduling policy of the probe [default: fifo, or other where that is not allowed]' -r -f -a "other\t''
fifo\t''
rr\t''
deadline\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l priority -d 'Real-time priority, 1 to 99 [default: 90]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l load -d 'Loads to measure under; `wakescope load --list` names them' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l load-dir -d 'Where loads keep their files [default: $TMPDIR or /tmp]' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l warmup -d 'How long the load runs alone, and then the probe unrecorded, before measuring' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l idle-states -d 'Leave idle states as they are, or keep CPUs in the shallowest while measuring' -r -f -a "as-is\t''
shallow\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l worst -d 'How many of the most delayed wakeups to list in the record' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l fail-above -d 'Exit with 1 if the maximum, or a percentile, is above a time: 100us, p99.9=50us' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l out -d 'Folder to write the run to [default: a new one below runs/]' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l seed -d 'Seed of the phase of the grid and of the contents of the loads\' files' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l json -d 'Print the run record to standard output instead of the report'
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -l save-samples -d 'Write every sample to samples.csv in the run\'s folder'
complete -c wakescope -n "__fish_wakescope_using_subcommand measure" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l above -d 'Which wakeups are late: those from a time or a percentile on' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l pid -d 'Follow the threads of this process, or this thread, instead of probes' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l comm -d 'Follow all threads of this name' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l cgroup -d 'Follow all threads in the cgroup with this folder, but not in those below it' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l vmlinux -d 'The kernel\'s image with debug information, for lines of source; else one is looked for' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l episodes -d 'How many of the worst wakeups to show in full' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l stimulus -d 'What causes the wakeups' -r -f -a "timer\t'A timer on an absolute grid of CLOCK_MONOTONIC'"
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l interval -d 'Period of the grid of wakeups' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l duration -d 'How long to measure' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l samples -d 'Measure this many wakeups on each CPU, instead of for a time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l cpus -d 'CPUs to measure, as in 0,2-3 [default: all that this process may use]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l policy -d 'Scheduling policy of the probe [default: fifo, or other where that is not allowed]' -r -f -a "other\t''
fifo\t''
rr\t''
deadline\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l priority -d 'Real-time priority, 1 to 99 [default: 90]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l load -d 'Loads to measure under; `wakescope load --list` names them' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l load-dir -d 'Where loads keep their files [default: $TMPDIR or /tmp]' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l warmup -d 'How long the load runs alone, and then the probe unrecorded, before measuring' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l idle-states -d 'Leave idle states as they are, or keep CPUs in the shallowest while measuring' -r -f -a "as-is\t''
shallow\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l worst -d 'How many of the most delayed wakeups to list in the record' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l fail-above -d 'Exit with 1 if the maximum, or a percentile, is above a time: 100us, p99.9=50us' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l out -d 'Folder to write the run to [default: a new one below runs/]' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l seed -d 'Seed of the phase of the grid and of the contents of the loads\' files' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l bound -d 'Compose what was seen into a bound on the wakeup latency'
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l sections -d 'Measure every section with interrupts or preemption off, with both its ends'
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l json -d 'Print the run record to standard output instead of the report'
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -l save-samples -d 'Write every sample to samples.csv in the run\'s folder'
complete -c wakescope -n "__fish_wakescope_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -l duration -d 'How long, as in 10s or 5min (default: until Ctrl-C)' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -l dir -d 'Where loads make their files, which are removed at the end (default: $TMPDIR, or /tmp)' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -l seed -d 'Of the names and the content of files' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -l json -d 'Print the result as JSON'
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -l list -d 'List the loads'
complete -c wakescope -n "__fish_wakescope_using_subcommand load" -s h -l help -d 'Print help'
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l format -d 'What to show them as [default: what the ending of -o FILE says, or text]' -r -f -a "text\t'For people: verdict, table, findings, histogram'
html\t'A page in one file, with pictures, tables and exact values under the pointer'
svg\t'One picture, for papers and slides'
png\t'The same made of pixels'
md\t'A table and the findings as Markdown, for a pull request'
json\t'The run record'
realfeel\t'The block of Clark Williams\' paper of 2002: statistics, shares below thresholds, five nines'
cyclictest\t'The histogram that cyclictest prints, in whole µs'
cyclictest-json\t'The file that cyclictest writes with --json'
csv\t'The histograms as comma-separated values; nothing is lost of them'
hlog\t'HdrHistogram\'s interval log, compressed, one tag per CPU'
hgrm\t'HdrHistogram\'s percentile distribution, of all CPUs together'
prometheus\t'A classic histogram for Prometheus'
openmetrics\t'The same as OpenMetrics'
jsonl\t'Every sample as a JSON object on a line of its own, of runs measured with --save-samples'
trace\t'The latest wakeups as a trace for Perfetto (ui.perfetto.dev) or about:tracing'"
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l picture -d 'The picture for --format svg or png: exceedance, histogram, cpus, course, components, causes, episodes [default: exceedance]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l line -d 'Draw a line at these times, besides those of the runs\' limits' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l title -d 'What to call it all' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l thresholds -d 'Thresholds for --format realfeel [default: those of 2002, 0.1 ms to 100 ms]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l unit -d 'The unit of values, for files of other programs that do not state it' -r -f -a "ns\t'Nanoseconds'
us\t'Microseconds'
ms\t'Milliseconds'"
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l distribution -d 'Which values to export: one per wakeup, or one per expiry [default: woken for the formats of cyclictest, which means that; both for csv; expiries for the others]' -r -f -a "woken\t'One value per wakeup'
expiries\t'One value per expiry, also of those that a late wakeup swallowed'"
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l rows -d 'Rows of a histogram for cyclictest, one per µs; later samples are its overflow [default: as many as the maximum takes, 1000000 at most]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -s o -l output -d 'Write to a file instead of standard output' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l mix-quantities -d 'Show also values of different kinds together, such as gaps in a busy loop and wakeup latencies'
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -l sparse -d 'Leave out empty rows of a histogram for cyclictest, as rt-tests does from 2.7 on'
complete -c wakescope -n "__fish_wakescope_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand import" -l from -d 'What wrote them, where that is not seen from the files' -r -f -a "cyclictest\t''
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
schbench-json\t''
stress-ng\t''
realfeel\t''
hlog\t''
hgrm\t''
perf-sched\t''"
complete -c wakescope -n "__fish_wakescope_using_subcommand import" -l unit -d 'The unit of values, for files of other programs that do not state it' -r -f -a "ns\t'Nanoseconds'
us\t'Microseconds'
ms\t'Milliseconds'"
complete -c wakescope -n "__fish_wakescope_using_subcommand import" -l out -d 'The run\'s folder; of several runs, the folder that theirs are made in [default: below runs/]' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l against -d 'The old runs' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l interleave-plan -d 'Print a script that measures so many runs a side in turns, instead of comparing' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l margin -d 'By what share a figure must differ to count [default: 10%]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l alpha -d 'How likely alike runs may be called better or worse [default: 5%]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l max-regression -d 'Exit with 1 only if a figure is shown to be worse by more than this, with 3 if that is open' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l fail-above -d 'Exit with 1 if a new run\'s maximum, or a percentile, is above a time: 100us, p99.9=50us' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l unit -d 'The unit of values, for files of other programs that do not state it' -r -f -a "ns\t'Nanoseconds'
us\t'Microseconds'
ms\t'Milliseconds'"
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l seed -d 'Seed of the splits that are drawn where there are too many to count, or of the plan' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l format -d 'What to show it as [default: what the ending of -o FILE says, or text]' -r -f -a "text\t'For people: verdict, table, reasons'
json\t'The record of the comparison'
junit\t'For CI systems: a test case per figure and limit'
markdown\t'For pull requests'"
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -s o -l output -d 'Write to a file instead of standard output' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l accept-blocks -d 'Judge also where one side was measured after the other'
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l force -d 'Compare also runs that are not alike in what matters'
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l mix-quantities -d 'Compare also values of different kinds, such as gaps in a busy loop with wakeup latencies'
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -l json -d 'The same as --format json'
complete -c wakescope -n "__fish_wakescope_using_subcommand compare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand trend" -l alpha -d 'How likely a change may be found in a series without one [default: 5%]' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand trend" -l unit -d 'The unit of values, for files of other programs that do not state it' -r -f -a "ns\t'Nanoseconds'
us\t'Microseconds'
ms\t'Milliseconds'"
complete -c wakescope -n "__fish_wakescope_using_subcommand trend" -l seed -d 'Seed of the permutations' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand trend" -s o -l output -d 'Write to a file instead of standard output: a picture, if its name ends in .svg or .png; the record, if in .json' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand trend" -l by-time -d 'Order them by the time at which they began'
complete -c wakescope -n "__fish_wakescope_using_subcommand trend" -l force -d 'Take also runs that are not alike in what matters'
complete -c wakescope -n "__fish_wakescope_using_subcommand trend" -l json -d 'Print JSON: the record of the series'
complete -c wakescope -n "__fish_wakescope_using_subcommand trend" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch run verify bisect prune" -s h -l help -d 'Print help'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch run verify bisect prune" -f -a "kernels" -d 'List the kernels that can be fetched, and those that have been'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch run verify bisect prune" -f -a "fetch" -d 'Fetch kernels from Debian\'s archive, and the emulator that boots them, for the lab alone'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch run verify bisect prune" -f -a "run" -d 'Run kernels × preemption models × loads × seeds in virtual time, and compare them'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch run verify bisect prune" -f -a "verify" -d 'Run cells that are kept once more, and fail if a bit differs'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch run verify bisect prune" -f -a "bisect" -d 'Find the first of an ordered list of kernels that breaks a limit'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and not __fish_seen_subcommand_from kernels fetch run verify bisect prune" -f -a "prune" -d 'Make what is kept smaller: remove the cells that were not used for the longest time'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from kernels" -l arch -d 'What the kernels run on: amd64 or arm64 (default: as this machine)' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from kernels" -l all -d 'List every version, not just the newest of each series and flavour'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from kernels" -l refresh -d 'Look for newer ones, also if that was done today'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from kernels" -l json -d 'Print the list as JSON'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from kernels" -s h -l help -d 'Print help'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from fetch" -l arch -d 'What the kernels run on: amd64 or arm64 (default: as this machine)' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from fetch" -l refresh -d 'Look for newer ones, also if that was done today'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from fetch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l plan -d 'A plan that comes with wakescope (williams, linux-journal, debian-atlas), or a plan\'s file' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l kernel -d 'Kernels: 6.1-cloud and the like (see `wakescope lab kernels`), or files: old/bzImage' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l preempt -d 'Preemption models to boot each with: none, voluntary, full, lazy, rt, default' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l load -d 'Loads: idle, find, launch, file-move, cpu, disturb-KIND-TIME; several at once as find+launch' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l seeds -d 'How many seeds, or which: 10, or 3,7,11. Each moves the probe\'s phase and changes the loads' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l samples -d 'Wakeups per cell' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l interval -d 'Period of the grid of wakeups, in virtual time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l warmup -d 'How long the load runs alone, and then the probe unrecorded, in virtual time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l cpu-mips -d 'How fast the guest\'s CPU is, in million instructions per virtual second: 1000, 500, 250, 125' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l policy -d 'Scheduling policy of the probe' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l priority -d 'Its real-time priority, 1 to 99' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l compare -d 'Is B worse than A: kernels, models or both, as in none:full or old/bzImage:new/bzImage' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l margin -d 'By how much they must differ for a verdict: 10% or 0.1' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l fail-above -d 'Exit with 1 if the maximum of any cell, or a percentile, is above a time: 100us, p99.9=50us' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l above -d 'Which wakeups --explain takes as late: those from a time or a percentile on' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l worst -d 'How many of the most delayed wakeups to list in each record' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l arch -d 'What Debian\'s kernels are to run on: amd64 or arm64 (default: as this machine)' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l config -d 'The configuration of a kernel given as a file, if it is not config-RELEASE beside it; repeated, in the order of the kernels' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l modules -d 'Its modules: what /lib/modules/RELEASE would be, or where they were installed to' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l symbols -d 'Its System.map' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l module -d 'Modules that guests load before they measure, with those that these need' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l append -d 'More for the kernels\' command line, as in \'nohz=off threadirqs\'' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l qemu -d 'The emulator: QEMU 8 or newer (default: the lab\'s own, or the machine\'s)' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l guest-program -d 'The guest\'s program, a static wakescope for the kernels\' architecture (default: the wakescope-guest that belongs to this one)' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l jobs -d 'Guests to run side by side (default: one per CPU)' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l timeout -d 'The most time of this machine that a guest may take' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l cpus -d 'CPUs of a guest; more than one takes --experimental-smp' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l explain -d 'Let each guest explain its late wakeups. That takes virtual time of its own: do not compare the figures with those of guests that do not'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l sections -d 'Let guests that explain measure every section with interrupts or preemption off, too, where their kernel shows them'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l bound -d 'Let guests that explain compose what they saw into a bound on the wakeup latency, which stands beside the latest wakeup'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l experimental-smp -d 'Allow more than one CPU: the emulator lets them take turns of about a millisecond, and the figures show that, not the kernel'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l all-figures -d 'Show p99.9 and p50 beside the maximum, also where all of that fits no screen'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l json -d 'Print JSON: the record of the lab'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -l markdown -d 'Print Markdown, with all figures'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from verify" -l at-most -d 'Run no more than that many, spread evenly over all' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from verify" -l jobs -d 'Guests to run side by side (default: one per CPU)' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from verify" -l qemu -d 'The emulator (default: the lab\'s own, or the machine\'s)' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from verify" -l timeout -d 'The most time of this machine that a guest may take' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l plan -d 'A plan that comes with wakescope (williams, linux-journal, debian-atlas), or a plan\'s file' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l kernel -d 'Kernels: 6.1-cloud and the like (see `wakescope lab kernels`), or files: old/bzImage' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l preempt -d 'Preemption models to boot each with: none, voluntary, full, lazy, rt, default' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l load -d 'Loads: idle, find, launch, file-move, cpu, disturb-KIND-TIME; several at once as find+launch' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l seeds -d 'How many seeds, or which: 10, or 3,7,11. Each moves the probe\'s phase and changes the loads' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l samples -d 'Wakeups per cell' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l interval -d 'Period of the grid of wakeups, in virtual time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l warmup -d 'How long the load runs alone, and then the probe unrecorded, in virtual time' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l cpu-mips -d 'How fast the guest\'s CPU is, in million instructions per virtual second: 1000, 500, 250, 125' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l policy -d 'Scheduling policy of the probe' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l priority -d 'Its real-time priority, 1 to 99' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l compare -d 'Is B worse than A: kernels, models or both, as in none:full or old/bzImage:new/bzImage' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l margin -d 'By how much they must differ for a verdict: 10% or 0.1' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l fail-above -d 'Exit with 1 if the maximum of any cell, or a percentile, is above a time: 100us, p99.9=50us' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l above -d 'Which wakeups --explain takes as late: those from a time or a percentile on' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l worst -d 'How many of the most delayed wakeups to list in each record' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l arch -d 'What Debian\'s kernels are to run on: amd64 or arm64 (default: as this machine)' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l config -d 'The configuration of a kernel given as a file, if it is not config-RELEASE beside it; repeated, in the order of the kernels' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l modules -d 'Its modules: what /lib/modules/RELEASE would be, or where they were installed to' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l symbols -d 'Its System.map' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l module -d 'Modules that guests load before they measure, with those that these need' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l append -d 'More for the kernels\' command line, as in \'nohz=off threadirqs\'' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l qemu -d 'The emulator: QEMU 8 or newer (default: the lab\'s own, or the machine\'s)' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l guest-program -d 'The guest\'s program, a static wakescope for the kernels\' architecture (default: the wakescope-guest that belongs to this one)' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l jobs -d 'Guests to run side by side (default: one per CPU)' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l timeout -d 'The most time of this machine that a guest may take' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l cpus -d 'CPUs of a guest; more than one takes --experimental-smp' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l repo -d 'A git repository, to bisect its revisions instead of a list of kernels' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l good -d 'The revision that is within the limit' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l bad -d 'A later one that is not' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l build -d 'The command that builds $REVISION, run by sh in the repository: it checks out and makes. If it fails, or ends with 125, the revision is skipped' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l image -d 'Where it leaves the kernel, seen from the repository' -r -F
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l explain -d 'Let each guest explain its late wakeups. That takes virtual time of its own: do not compare the figures with those of guests that do not'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l sections -d 'Let guests that explain measure every section with interrupts or preemption off, too, where their kernel shows them'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l bound -d 'Let guests that explain compose what they saw into a bound on the wakeup latency, which stands beside the latest wakeup'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l experimental-smp -d 'Allow more than one CPU: the emulator lets them take turns of about a millisecond, and the figures show that, not the kernel'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -l json -d 'Print JSON'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from bisect" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from prune" -l keep -d 'How much cells may take: 500MB, 2GB; 0 removes all' -r
complete -c wakescope -n "__fish_wakescope_using_subcommand lab; and __fish_seen_subcommand_from prune" -s h -l help -d 'Print help (see more with \'--help\')'
