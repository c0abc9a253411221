package host

import (
	"fmt"
	"time"
)

// Exited reports whether the process has ended.
func (p *Process) Exited() bool { return p.client.Exited() }

// killAfter is how long a process may take to end when it is asked to.
const killAfter = 5 * time.Second

// Kill asks the process to end, ends it if it does not, and waits. Its children end with
// it.
func (p *Process) Kill() {
	defer time.AfterFunc(killAfter, p.endGroup).Stop()
	p.client.Kill()
	p.endGroup()
	p.cleanup()
}

// Abort ends the process and its children at once, and waits. A process that is stopped or
// busy would let Kill wait for an answer for ever.
func (p *Process) Abort() {
	p.endGroup()
	p.client.Kill()
	p.cleanup()
}

// endGroup ends the process's group. A child of a process that has ended is in it
// still, and go-plugin waits as long as one holds the process's pipes.
func (p *Process) endGroup() {
	if p.cmd.Process != nil && p.cmd.Process.Pid > 1 { // -1 as a group is every process, and a released one has it
		endGroup(p.cmd.Process.Pid)
	}
}

// Died waits up to a second for the process to end and returns how it did: "exit status 2",
// "signal: killed"; it is empty for a process that goes on. killed reports a signal from
// outside of the process.
func (p *Process) Died() (how string, killed bool) {
	for end := time.Now().Add(time.Second); !p.client.Exited(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return "", false
		}
	}
	s := p.cmd.ProcessState // set before Exited is
	if s == nil {
		return "", false
	}
	return s.String(), endedFromOutside(s)
}

// OverLimit returns an error when the process has more memory resident than it may have, with
// its children where it may have any. Memory that they share counts for each.
func (p *Process) OverLimit() error {
	limit := p.settings.MemoryLimit
	if limit <= 0 {
		return nil
	}
	measure := resident
	if p.settings.Off || p.settings.Rules.Processes {
		measure = ofSession
	}
	if n, ok := measure(p.pid); ok && n > limit {
		return fmt.Errorf("decoder %s: %d MiB of memory, the limit is %d", p.settings.Name, n>>20, limit>>20)
	}
	return nil
}
