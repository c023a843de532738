/* Data of one CPU that N tasks change: crates/model/scenarios/catface.toml for SPIN.
 *
 * One CPU runs the ready task of the highest priority, as a kernel with full preemption does. Task 0 never
 * sleeps; a timer wakes each of the others at any time. PROTECTED: with preemption disabled around each
 * change, as in catface-protected.toml.
 */
#ifndef N
#define N 2
#endif

bool ready[N];
byte running;
byte preempt_count;
bool need_resched;
byte changes;

inline switch_to_first() {
	running = N - 1;
	do
	:: !ready[running] -> running--
	:: else -> break
	od;
	need_resched = false
}

proctype task(byte me) {
	do
	:: true ->
		if
		:: me > 0 -> d_step { running == me -> ready[me] = false; switch_to_first() }
		:: else
		fi;
		running == me -> skip;
#ifdef PROTECTED
		d_step { running == me -> preempt_count++ };
#endif
		d_step { running == me -> assert(changes == 0); changes++ };
		d_step { running == me -> changes-- };
#ifdef PROTECTED
		d_step {
			running == me -> preempt_count--;
			if
			:: preempt_count == 0 && need_resched -> switch_to_first()
			:: else
			fi
		};
#endif
		running == me -> skip
	od
}

/* The interrupt that wakes a task, and the way back from it. */
proctype timer(byte whom) {
	do
	:: d_step {
		!ready[whom] -> ready[whom] = true;
		if
		:: whom > running && preempt_count == 0 -> switch_to_first()
		:: whom > running && preempt_count > 0 -> need_resched = true
		:: else
		fi
	}
	od
}

init {
	byte each;
	atomic {
		each = 0;
		do
		:: each < N ->
			ready[each] = true;
			run task(each);
			if
			:: each > 0 -> run timer(each)
			:: else
			fi;
			each++
		:: else -> break
		od;
		switch_to_first()
	}
}
