//! Small files in each format, made by hand after what the programs print.

use super::super::Format;

pub(super) const CYCLICTEST_2_4: &str = "\
# /dev/cpu_dma_latency set to 0us
# Histogram
000000 000000\t000000
000001 000003\t000000
000002 000005\t000004
000003 000001\t000000
# Total: 000000009 000000004
# Min Latencies: 00001 00002
# Avg Latencies: 00001 00004
# Max Latencies: 00003 00012
# Histogram Overflows: 00000 00001
# Histogram Overflow at cycle number:
# Thread 0:
# Thread 1: 00003

";

pub(super) const CYCLICTEST_2_7: &str = "\
# Histogram
000001 000003\t000000\t000003
000002 000005\t000004\t000009
000003 000001\t000000\t000001
# Min Latencies: 00001 00002
# Avg Latencies: 00001 00002
# Max Latencies: 00003 00002 00003
# Histogram Overflows: 00000 00000 00000
# Histogram Overflow at cycle number:
# Thread 0:
# Thread 1:
# SMIs: 00000 00000

";

pub(super) const CYCLICTEST_QUIET: &str = "\
# /dev/cpu_dma_latency set to 0us
T: 0 (25498) P:80 I:500 C:    300 Min:     47 Act:   66 Avg:   74 Max:    2504
T: 1 (25499) P:80 I:1000 C:      0 Min:1000000 Act:    0 Avg:    0 Max:       0
";

pub(super) const CYCLICTEST_LIVE: &str = "\
\x1b[2A\x1b[4Apolicy: fifo: loadavg: 2.91 2.97 1.55 1/92 27481          
T: 0 (27480) P:80 I:1000 C:     10 Min:     63 Act:   65 Avg:   65 Max:      76
\x1b[2A\x1b[4Apolicy: fifo: loadavg: 2.91 2.97 1.55 1/92 27481          
T: 0 (27480) P:80 I:1000 C:    100 Min:     63 Act:   65 Avg:   65 Max:      80
";

pub(super) const CYCLICTEST_VERBOSE: &str = "\
Max CPUs = 2
Online CPUs = 2
# /dev/cpu_dma_latency set to 0us
Thread 0 Interval: 1000
Thread 1 Interval: 1500
       0:       0:      74
       0:       1:      66
       1:       0:    1065
       0:       1:       0
       0:       3:      65
       1:       1:      65
";

/// `cyclictest -q -v -a 0-1 -t 2 -l 6 -i 3000 -d 1500 -p 80` of rt-tests 2.4. Of thread 1, two samples
/// are not printed; it is known that one of them was 41.
pub(super) const CYCLICTEST_VERBOSE_QUIET: &str = "\
Using 2 cpus.
Max CPUs = 2
Online CPUs = 2
Using 2 cpus.
# /dev/cpu_dma_latency set to 0us
Thread 0 using cpu 0.
Thread 0 Interval: 4500
Thread 1 using cpu 1.
Thread 1 Interval: 6000
       0:       0:      37
       0:       1:      37
       0:       2:      19
       1:       0:      24
       1:       1:      23
       0:       3:      32
       0:       4:      38
       0:       5:      35
       1:       2:      22
       1:       3:      20
T: 0 ( 6597) P:80 I:3000 C:      6 Min:     19 Act:   35 Avg:   33 Max:      38
T: 1 ( 6598) P:80 I:4500 C:      6 Min:     20 Act:   26 Avg:   26 Max:      41
";

pub(super) const CYCLICTEST_JSON: &str = r##"{
  "file_version": 1,
  "cmdline:": "cyclictest -t3 -p80 -a -m -q -l 2000 -i 200 -h 10 --json=ct.json",
  "rt_test_version:": "2.40",
  "start_time": "Sat, 21 Nov 2026 00:27:12 +0000",
  "end_time": "Sat, 21 Nov 2026 00:27:14 +0000",
  "return_code": 0,
  "sysinfo": {
    "sysname": "Linux",
    "nodename": "vm",
    "release": "6.12.95-rt",
    "version": "#1 SMP PREEMPT_RT",
    "machine": "x86_64",
    "realtime": 1
  },
  "num_threads": 3,
  "resolution_in_ns": 0,
  "thread": {
    "0": {
      "histogram": {
        "3": 2,
        "4": 5
      },
      "cycles": 10,
      "min": 3,
      "max": 51,
      "avg": 14.25,
      "cpu": 0,
      "node": 0
    },
    "1": {
      "histogram": {      },
      "cycles": 7,
      "min": 15,
      "max": 51,
      "avg": 20.29,
      "cpu": 1,
      "node": 0
    },
    "2": {
      "histogram": {      },
      "cycles": 0,
      "min": 1000000,
      "max": 0,
      "avg": -nan,
      "cpu": -1,
      "node": 0
    }
  }
}
"##;

pub(super) const JITTERDEBUGGER: &str = r##"{
  "version": 3,
  "sysinfo": {
    "sysname": "Linux",
    "nodename": "vm",
    "release": "6.12.95",
    "version": "#1 SMP PREEMPT_DYNAMIC",
    "machine": "x86_64",
    "cpus_online": 2,
    "resolution_in_ns": 1000
  },
  "cpu": {
    "0": {
      "histogram": {
        "22": 2,
        "23": 6
      },
      "count": 10,
      "min": 22,
      "max": 11184,
      "avg": 1286.60
    },
    "1": {
      "histogram": {
        "22": 2
      },
      "count": 2,
      "min": 22,
      "max": 22,
      "avg": 22.00
    }
  }
}
"##;

pub(super) const TIMERLAT: &str = "\
# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:01:05
Index   IRQ-000   Thr-000   Usr-000   IRQ-002   Thr-002   Usr-002
0            10         0         0         8         0         0 
1             2         4         0         0         0         0 
7             0         7        10         0         8         5 
over:         0         1         2         0         0         3 
count:       12        12        12         8         8         8 
min:          0         1         7         0         7         7 
avg:          0         7        50         0         7        40 
max:          1        40       300         0         7       200 
ALL:        IRQ       Thr       Usr
count:       20        20        20 
min:          0         1         7 
avg:          0         7        46 
max:          1        40       300 
";

pub(super) const OSNOISE: &str = "\
# RTLA osnoise histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:10
Index   CPU-000   CPU-001
0          9000      9100 
5             3         0 
10            1         2 
over:         1         0 
count:     9005      9102 
min:          0         0 
avg:       0.10      0.01 
max:        900        12 
12 (0.50%) events missed, results might not be accurate
";

pub(super) const OSLAT_2_4: &str = "\
oslat V 2.40
        Core:\t 0 3
Counter Freq:\t 2597 2597 (Mhz)
    001 (us):\t 10 20
    ...
    003 (us):\t 2 0
    004 (us):\t 1 0 (including overflows)
     Minimum:\t 1 1 (us)
     Average:\t 4.000 1.000 (us)
     Maximum:\t 36 1 (us)
     Max-Min:\t 35 0 (us)
    Duration:\t 1.018 1.022 (sec)

";

pub(super) const OSLAT_JSON: &str = r##"{
  "file_version": 1,
  "cmdline:": "oslat -D 1 -b 8 -f 5 --json=oslat.json",
  "rt_test_version:": "2.80",
  "start_time": "Sat, 21 Nov 2026 13:19:24 +0000",
  "end_time": "Sat, 21 Nov 2026 13:19:26 +0000",
  "return_code": 0,
  "sysinfo": { "sysname": "Linux", "nodename": "vm", "release": "6.12.95", "version": "#1", "machine": "x86_64", "realtime": 0 },
  "num_threads": 1,
  "thread": {
    "0": {
      "cpu": 0,
      "freq": 2597,
      "min": 0,
      "avg": 1.235739,
      "max": 1993,
      "duration": 2.002,
      "histogram": {
        "1": 9000,
        "2": 108,
        "8": 8
      }
    }
  }
}
"##;

pub(super) const RTEVAL: &str = r##"<?xml version="1.0" encoding="UTF-8"?>
<rteval version="3.7">
  <run_info days="0" hours="0" minutes="1" seconds="2"><date>2026-11-21</date><time>00:27:12</time><annotate/></run_info>
  <SystemInfo><uname><node>a &amp; b</node><kernel is_RT="1">6.12.95-rt</kernel><arch>x86_64</arch></uname></SystemInfo>
  <loads loads="3" loadcpus="0-1"><command_line name="hackbench" run="1">hackbench &lt;x&gt;</command_line></loads>
  <Measurements measurecpus="0-1">
    <cyclictest command_line="cyclictest -i100 -qmu -h 3500 -p95 -t2 -a0-1">
      <system description="(2 cores) x"><statistics><samples>9</samples><minimum unit="us">3</minimum><maximum unit="us">6</maximum><median unit="us">3</median><mean unit="us">3.6666666666666665</mean></statistics>
        <histogram nbuckets="3500"><bucket index="3" value="5"/><bucket index="4" value="3"/><bucket index="6" value="1"/></histogram></system>
      <core id="0" priority="95"><statistics><samples>5</samples><minimum unit="us">3</minimum><maximum unit="us">4</maximum><mean unit="us">3.4</mean></statistics>
        <histogram nbuckets="3500"><bucket index="3" value="3"/><bucket index="4" value="2"/></histogram></core>
      <core id="1" priority="95"><statistics><samples>4</samples><minimum unit="us">3</minimum><maximum unit="us">6</maximum><mean unit="us">4.0</mean></statistics>
        <histogram nbuckets="3500"><bucket index="3" value="2"/><bucket index="4" value="1"/><bucket index="6" value="1"/></histogram></core>
    </cyclictest>
  </Measurements>
</rteval>
"##;

pub(super) const SCHBENCH: &str = "\
Wakeup Latencies percentiles (usec) runtime 3 (s) (100 total samples)
\t  20.0th: 2          (21 samples)
\t  50.0th: 7          (30 samples)
\t  90.0th: 40         (40 samples)
\t* 99.0th: 90         (8 samples)
\t  99.9th: 100        (1 samples)
\t  min=1, max=100
Request Latencies percentiles (usec) runtime 3 (s) (10 total samples)
\t  50.0th: 7000       (2 samples)
\t  90.0th: 8000       (4 samples)
\t* 99.0th: 9490       (1 samples)
\t  99.9th: 9490       (0 samples)
\t  min=6000, max=9500
RPS percentiles (requests) runtime 3 (s) (4 total samples)
\t  20.0th: 300        (2 samples)
\t* 50.0th: 310        (1 samples)
\t  min=299, max=311
";

pub(super) const STRESS_NG: &str = "\
stress-ng: info:  [25581] setting to a 2 second run per stressor
stress-ng: info:  [25581] dispatching hogs: 1 cyclic
stress-ng: info:  [25582] cyclic: sched SCHED_DEADLINE: 100000 ns delay, 10 samples
stress-ng: info:  [25582] cyclic:   mean: 28159.34 ns, mode: 16013 ns
stress-ng: info:  [25582] cyclic:   min: 9464 ns, max: 94728 ns, std.dev. 26989.19
stress-ng: info:  [25582] cyclic: latency percentiles:
stress-ng: info:  [25582] cyclic:   25.00%:      15883 ns
stress-ng: info:  [25582] cyclic: latency distribution (10000 ns intervals):
stress-ng: info:  [25582] cyclic: (for the first 3 buckets of 10)
stress-ng: info:  [25582] cyclic: latency (ns)  frequency
stress-ng: info:  [25582] cyclic:            0          1
stress-ng: info:  [25582] cyclic:        10000          7
stress-ng: info:  [25582] cyclic:        20000          0
stress-ng: info:  [25582] cyclic: Note: --cyclic-samples needed to be 16 to capture all the data for this run
stress-ng: info:  [25581] successful run completed in 2.01s
";

pub(super) const REALFEEL: &str = "0.0 12\n0.1 800\n1.0 3\n45.2 1\n";

pub(super) const HLOG: &str = "\
#[Histogram log format version 1.2]
#[Unit: us]
#[Quantity: request-latency]
\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"
Tag=A,2.133,1.001,0.426,HISTFAAAAD942pNpmSzMwMAgwwABTBDKT4GBgdnNYMcCBvsPEBE+Ph4OLgk5OSkeIS4+LgEeswIDo1+MbmdYNASYAA51CSo=
Tag=A,3.134,1.001,0.426,HISTFAAAAD942pNpmSzMwMAgwwABTBDKT4GBgdnNYMcCBvsPEBExPiEpITEFGTkRKSEeOR6FkCg1hTeMXvNYlHhYABQ5CTo=
Tag=B,0.127,1.007,2.769,HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYMcCBvsPEBEJISEuATEZMQ4uASkhIR4nrxg9v2lMaxhvMekILGZkKmcCAEf2CsI=
";

pub(super) const HGRM: &str = "\
#[Unit: us]
       Value     Percentile TotalCount 1/(1-Percentile)

       7.000 0.000000000000          1           1.00
       8.000 0.500000000000         55           2.00
      12.000 0.750000000000         80           4.00
      12.000 0.800000000000         80           5.00
      99.000 0.990000000000         99         100.00
     128.000 1.000000000000        100
#[Mean    =        9.250, StdDeviation   =       12.100]
#[Max     =      128.000, Total count    =          100]
#[Buckets =            8, SubBuckets     =         2048]
";

pub(super) const PERF_SCHED: &str = "
 -------------------------------------------------------------------------------------------------------------------------------------------
  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    | Max delay start           | Max delay end          |
 -------------------------------------------------------------------------------------------------------------------------------------------
  CPU 2/KVM:(2)         |   5399.650 ms |   108698 | avg:   0.003 ms | max:   3.077 ms | max start:   544.090322 s | max end:   544.093399 s
  sleep:27484           |      2.142 ms |        1 | avg:   0.010 ms | max:   0.010 ms | max start:     0.000000 s | max end:     0.000000 s
 -----------------------------------------------------------------------------------------------------------------
  TOTAL:                |   5401.792 ms |   108699 |
 ---------------------------------------------------

";

/// Raw samples of two threads.
pub(super) fn raw() -> Vec<u8> {
    let record = |thread: u32, at_ns: u64, value: u64| {
        let mut bytes = thread.to_le_bytes().to_vec();
        for word in [at_ns / 1_000_000_000, at_ns % 1_000_000_000, value] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes
    };
    let at = |i: u64| 5_000_000_000 + i * 1_000_000;
    (0..50)
        .flat_map(|i| [record(0, at(i), 20 + i % 3), record(1, at(i), 30 + i * 30)].concat())
        .collect()
}

/// Every file, with its format.
pub(super) fn all() -> Vec<(Format, Vec<u8>)> {
    let mut all: Vec<(Format, Vec<u8>)> = [
        (Format::CyclictestText, CYCLICTEST_2_4),
        (Format::CyclictestText, CYCLICTEST_2_7),
        (Format::CyclictestText, CYCLICTEST_QUIET),
        (Format::CyclictestText, CYCLICTEST_LIVE),
        (Format::CyclictestVerbose, CYCLICTEST_VERBOSE),
        (Format::CyclictestVerbose, CYCLICTEST_VERBOSE_QUIET),
        (Format::CyclictestJson, CYCLICTEST_JSON),
        (Format::JitterdebuggerJson, JITTERDEBUGGER),
        (Format::Timerlat, TIMERLAT),
        (Format::Osnoise, OSNOISE),
        (Format::OslatText, OSLAT_2_4),
        (Format::OslatJson, OSLAT_JSON),
        (Format::Rteval, RTEVAL),
        (Format::SchbenchText, SCHBENCH),
        (Format::StressNg, STRESS_NG),
        (Format::Realfeel, REALFEEL),
        (Format::HdrLog, HLOG),
        (Format::HdrPercentiles, HGRM),
        (Format::PerfSched, PERF_SCHED),
    ]
    .map(|(format, text)| (format, text.as_bytes().to_vec()))
    .into();
    all.push((Format::JitterdebuggerRaw, raw()));
    all
}
