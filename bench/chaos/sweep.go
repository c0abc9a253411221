package chaos

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/bench/chaos/trace"
)

// SweepOptions of a sweep.
type SweepOptions struct {
	Bin string // a directory with earshot and earshot-store
	Dir string // an empty one
	// Every n-th hit of a point is tried, the first one always; 0: every one.
	Every int
	Log   io.Writer
}

// SweepReport is the outcome of a sweep.
type SweepReport struct {
	Points  map[string]int // how often a sidecar was killed at each
	Missed  int            // sidecars that were not killed, because the hit did not occur again
	Differs []string       // tables that differ from those of a clean pass, and where the sidecar was killed
	Took    time.Duration
}

// requiredPoints are the points that a sweep must have hit, or it proves nothing of them.
var requiredPoints = []string{
	"read a source", "write the journal", "sync the journal", "write to the decoder", "read from the decoder",
	"write the spool", "sync the spool", "write to the store", "read from the store", "write the checkpoint", "sync the checkpoint",
	"read from a client", "write to a client", "read from an OTLP client", "write to an OTLP client",
}

// Err returns the faults of the outcome.
func (r *SweepReport) Err() error {
	var all []string
	for _, p := range requiredPoints {
		for _, side := range []string{"before", "after"} {
			if strings.HasPrefix(p, "read") && side == "before" {
				continue // nothing has happened
			}
			if r.Points[side+": "+p] == 0 {
				all = append(all, fmt.Sprintf("never killed %s: %s", side, p))
			}
		}
	}
	if all = append(all, r.Differs...); len(all) > 0 {
		return fmt.Errorf("%s", strings.Join(all, "\n"))
	}
	return nil
}

// String formats the report.
func (r *SweepReport) String() string {
	var b strings.Builder
	total := 0
	for _, p := range slices.Sorted(maps.Keys(r.Points)) {
		fmt.Fprintf(&b, "%-36s %4d kills\n", p, r.Points[p])
		total += r.Points[p]
	}
	fmt.Fprintf(&b, "%-36s %4d kills, %d points not met again, %d outcomes that differ, %s\n",
		"all", total, r.Missed, len(r.Differs), r.Took.Round(time.Second))
	return b.String()
}

// Sweep kills a sidecar at each of the system calls by which it reads, stores or sends the
// agents' traffic, before the call and after it: one process for each. The next process must
// leave the tables, and the spans at a collector that was down for the first one, as one clean
// pass leaves them.
func Sweep(ctx context.Context, o SweepOptions) (*SweepReport, error) {
	began := time.Now()
	s, err := newScript(o.Bin, o.Dir)
	if err != nil {
		return nil, err
	}
	defer s.close()
	clean, hits, err := s.pass(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("a clean pass: %w", err)
	}
	for _, table := range tables {
		if clean[table.name] == "" {
			return nil, fmt.Errorf("a clean pass leaves no %s: nothing would be compared", table.name)
		}
	}
	report := &SweepReport{Points: make(map[string]int)}
	for _, point := range slices.Sorted(maps.Keys(hits)) {
		for n := 1; n <= hits[point]; n += max(o.Every, 1) {
			got, was, err := s.pass(ctx, &target{point, n})
			if err != nil {
				return nil, fmt.Errorf("killed at hit %d of %q: %w", n, point, err)
			}
			if was == nil {
				report.Missed++
			} else {
				report.Points[point]++
			}
			for name, want := range clean {
				if got[name] != want {
					report.Differs = append(report.Differs, fmt.Sprintf("%s, killed at hit %d of %q:\n%s", name, n, point, difference(want, got[name])))
				}
			}
			fmt.Fprintf(o.Log, "%s %d: killed %v\n", point, n, was != nil)
		}
	}
	report.Took = time.Since(began)
	return report, nil
}

// target is a hit of a point.
type target struct {
	point string
	hit   int
}

// difference shows the first lines that are in one only.
func difference(want, got string) string {
	var b strings.Builder
	only := func(sign, x, y string) {
		in := make(map[string]bool)
		for l := range strings.Lines(y) {
			in[l] = true
		}
		shown := 0
		for l := range strings.Lines(x) {
			if !in[l] && shown < 3 {
				shown++
				b.WriteString(sign + l)
			}
		}
	}
	only("  -", want, got)
	only("  +", got, want)
	return b.String()
}

// runSidecar runs the sidecar until it is killed at the target, or until it is idle. It returns
// the hits of each point; nil if the sidecar was killed somewhere else.
func (s *script) runSidecar(ctx context.Context, at *target, pushed <-chan struct{}) (map[string]int, error) {
	hits := make(map[string]int)
	where := &pointNamer{script: s, sockets: make(map[string]string)}
	stop, beat := make(chan struct{}), make(chan struct{}, 1)
	out, err := os.CreateTemp(s.dir, "sidecar")
	if err != nil {
		return nil, err
	}
	defer out.Close()
	ended := make(chan struct{})
	defer func() { <-ended }()
	done := make(chan struct{})
	defer close(done)
	// The collector is down, so the last act of the sidecar is to spool the spans for it. On a busy machine
	// a pause in front of that may be longer than any.
	var spooled atomic.Bool
	go func() {
		defer close(ended)
		defer close(stop)
		quiet := time.NewTimer(2 * time.Second)
		most := time.NewTimer(time.Minute)
		for {
			select {
			case <-beat:
				quiet.Reset(2 * time.Second)
				select {
				case <-pushed:
					quiet.Reset(500 * time.Millisecond)
				default:
				}
				continue
			case <-quiet.C:
				if !spooled.Load() {
					quiet.Reset(500 * time.Millisecond)
					continue
				}
			case <-most.C:
			case <-ctx.Done():
			case <-done:
			}
			return
		}
	}()
	killed, err := trace.Run(trace.Program{
		Path: s.exe, Args: []string{"run", "-c", s.config}, Output: out, Stop: stop,
		See: func(pid int, c trace.Call) bool {
			point := where.name(c)
			if point == "" {
				return false
			}
			hits[point]++
			if point == "after: sync the spool" {
				spooled.Store(true)
			}
			select {
			case beat <- struct{}{}:
			default:
			}
			return at != nil && point == at.point && hits[point] == at.hit
		},
	})
	if err != nil {
		return nil, err
	}
	if at != nil && !killed {
		return nil, ctx.Err()
	}
	return hits, nil
}

// pointNamer maps system calls to names of points.
type pointNamer struct {
	*script
	sockets map[string]string // by inode
}

// name is the point of a call, or nothing.
func (p *pointNamer) name(c trace.Call) string {
	side := "before: "
	if c.After {
		side = "after: "
	} else if c.Name == "read" {
		return ""
	}
	data := filepath.Join(p.dir, "data")
	below := func(dir string) bool { return strings.HasPrefix(c.File, filepath.Join(data, dir)) }
	switch {
	case strings.HasPrefix(c.File, p.in) && c.Name == "read":
		return side + "read a source"
	case below("journal"):
		return p.storage(side, c.Name, "the journal")
	case below("spool"):
		return p.storage(side, c.Name, "the spool")
	case below("checkpoint"):
		return p.storage(side, c.Name, "the checkpoint")
	case strings.HasPrefix(c.File, "socket:["):
		peer := p.peer(strings.TrimSuffix(strings.TrimPrefix(c.File, "socket:["), "]"))
		if peer == "" {
			return ""
		}
		if c.Name == "read" {
			return side + "read from " + peer
		}
		return side + "write to " + peer
	}
	return ""
}

func (p *pointNamer) storage(side, call, file string) string {
	if call == "read" {
		return "" // reading back changes nothing
	}
	return side + call + " " + file
}

// peer is the process at the other end of a socket.
func (p *pointNamer) peer(inode string) string {
	kind, ok := p.sockets[inode]
	if !ok {
		all := trace.Sockets()
		kind = all[inode]
		p.sockets[inode] = kind
	}
	local, remote, _ := strings.Cut(kind, ">")
	switch {
	case kind == "unix":
		return "the decoder"
	case local == p.push:
		return "a client"
	case local == p.otlp:
		return "an OTLP client"
	case remote == p.storePort:
		return "the store"
	}
	return "" // the collector, which is down
}

// port of an address.
func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}
