package verdicts

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// incident is a file of incidents/.
type incident struct {
	Name, Part, Thread string
	Formats            []string
	History            []past
	Steps              []step
	Until              time.Duration
	Skew               time.Duration // by which the clock of the agent is ahead
	Jump               time.Duration // by which it is set ahead, or back,
	JumpsAt            time.Duration // from then on
	Asleep             [2]time.Duration
	Expect             []expectation
}

// past are calls that were made before.
type past struct {
	Tool, Arguments string
	N               int
	From, To        time.Duration
}

// step is something that happens.
type step struct {
	At      time.Duration
	Lane    string // of a delegate; empty: the top-level run
	What    string
	ID      string // of a call
	Name    string // of a tool or a delegate
	Text    string
	Backlog bool
}

// status is how a result ended: success or error.
func (s step) status() string {
	if s.What == "error" {
		return "error"
	}
	return "success"
}

// expectation is a verdict that the facts allow from a time on.
type expectation struct {
	Verdict, Subject string // a tool's name, or run
	From             time.Duration
}

// skew is by how much the clock of the agent is ahead at a time.
func (c *incident) skew(at time.Duration) time.Duration {
	if c.Jump != 0 && at >= c.JumpsAt {
		return c.Skew + c.Jump
	}
	return c.Skew
}

// withID are the steps of a call, and how many words they have before the text.
var withID = map[string]int{"call": 2, "delegate": 2, "background": 2, "result": 1, "error": 1, "ask": 1, "allow": 1}

func load(path string) (*incident, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := &incident{Name: strings.TrimSuffix(filepath.Base(path), ".txt"), Part: filepath.Base(filepath.Dir(path))}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if err := c.line(strings.TrimSpace(lines.Text())); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	if c.Until == 0 || len(c.Formats) == 0 {
		return nil, fmt.Errorf("%s: no until, or no formats", path)
	}
	return c, lines.Err()
}

func (c *incident) line(s string) (err error) {
	first, rest, _ := strings.Cut(s, " ")
	switch first {
	case "", "#":
	case "thread:":
		c.Thread = rest
	case "formats:":
		c.Formats = strings.Fields(rest)
	case "history:":
		return c.past(rest)
	case "history":
		for i := range c.Steps {
			c.Steps[i].Backlog = true
		}
	case "clock":
		c.Skew, err = time.ParseDuration(rest)
	case "jump":
		at, by, _ := strings.Cut(rest, " ")
		if c.JumpsAt, err = time.ParseDuration(at); err == nil {
			c.Jump, err = time.ParseDuration(by)
		}
	case "asleep":
		f := strings.Fields(rest)
		if len(f) != 2 {
			return fmt.Errorf("asleep FROM TO, not %q", rest)
		}
		for i := range f {
			if c.Asleep[i], err = time.ParseDuration(f[i]); err != nil {
				return err
			}
		}
	case "until":
		c.Until, err = time.ParseDuration(rest)
	case "expect":
		if rest == "nothing" {
			return nil
		}
		f := strings.Fields(rest)
		if len(f) != 3 {
			return fmt.Errorf("expect VERDICT SUBJECT TIME, not %q", rest)
		}
		e := expectation{Verdict: f[0], Subject: f[1]}
		e.From, err = time.ParseDuration(f[2])
		c.Expect = append(c.Expect, e)
	default:
		return c.step(first, rest)
	}
	return err
}

func (c *incident) past(s string) error {
	f := strings.Fields(s)
	n := len(f)
	if n < 5 {
		return fmt.Errorf("history: TOOL ARGUMENTS N FROM TO, not %q", s)
	}
	p := past{Tool: f[0], Arguments: strings.Join(f[1:n-3], " ")}
	var err error
	if p.N, err = strconv.Atoi(f[n-3]); err != nil {
		return err
	}
	if p.From, err = time.ParseDuration(f[n-2]); err != nil {
		return err
	}
	p.To, err = time.ParseDuration(f[n-1])
	c.History = append(c.History, p)
	return err
}

func (c *incident) step(first, rest string) (err error) {
	var s step
	at, lane, _ := strings.Cut(first, "@")
	if s.At, err = time.ParseDuration(at); err != nil {
		return err
	}
	s.Lane = lane
	s.What, s.Text, _ = strings.Cut(rest, " ")
	if n := withID[s.What]; n > 0 {
		s.ID, s.Text, _ = strings.Cut(s.Text, " ")
		if n > 1 {
			s.Name, s.Text, _ = strings.Cut(s.Text, " ")
		}
	}
	c.Steps = append(c.Steps, s)
	return nil
}
