// Package notify brings verdicts to people: to a webhook, Slack, Alertmanager, PagerDuty or a
// command. Each is an exporter with a queue of its own, whose batches have verdicts and nothing
// else. So a notification is on the disk before it is sent, tried again until the other
// side accepts it, never in the way of rows, and a dead letter when it is refused for good.
//
// An exporter keeps a file of the notifications that it has sent: a verdict that is reported again, after a
// restart as well, is sent once, and one that is resolved is resolved where it was sent. Between
// the answer and the write of that file a crash can repeat one notification; it has the same key,
// by which Alertmanager and PagerDuty recognize it, and a webhook may.
//
// Verdicts of one session in one batch are one notification. Work that only waits for work below
// it is left out: its cause is notified. Text of agents is escaped for each target, and cut.
package notify

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/attribution"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/verdict"
)

// Notification is one request: verdicts of one session that were made, or resolved.
type Notification struct {
	Version  int       `json:"version"`  // 1
	Status   string    `json:"status"`   // firing or resolved
	Key      string    `json:"key"`      // of the first alert
	Session  string    `json:"session"`  // the conversation
	Link     string    `json:"link"`     // to the conversation; empty without one in the configuration
	Alerts   []Alert   `json:"alerts"`   // one at least
	Withheld int       `json:"withheld"` // notifications that the rate limit has dropped since the last one
	At       time.Time `json:"at"`
}

// Alert is one verdict.
type Alert struct {
	Key       string     `json:"key"` // the same in the resolved event
	Verdict   string     `json:"verdict"`
	Severity  string     `json:"severity"` // critical, warning or info
	Evidence  string     `json:"evidence"`
	Path      string     `json:"path"`             // from the top-level run down to the work, with ages: where the time is
	Advice    string     `json:"advice,omitempty"` // a person's next step
	LastWords string     `json:"last_words,omitempty"`
	Agent     string     `json:"agent,omitempty"`
	Tool      string     `json:"tool,omitempty"`
	Source    string     `json:"source"`
	Format    string     `json:"format"`
	Tenant    string     `json:"tenant"`
	TraceID   string     `json:"trace_id"`
	SpanID    string     `json:"span_id"`
	Since     time.Time  `json:"since"`
	Resolved  *time.Time `json:"resolved,omitempty"`
	Why       string     `json:"resolution,omitempty"`
}

// sender sends to one kind of target.
type sender interface {
	send(ctx context.Context, n *Notification) error
}

// Exporter notifies one target.
type Exporter struct {
	name   string
	rules  Rules
	quiet  quiet
	sender sender
	file   string
	log    *slog.Logger
	now    func() time.Time

	mu    sync.Mutex // of Export
	state state
	held  atomic.Pointer[[]msg.Verdict] // of the state, for Select, which never waits for Export
}

// state is the file of an exporter.
type state struct {
	Sent     map[string]time.Time   `json:"sent"` // firing, by key
	Held     map[string]msg.Verdict `json:"held"` // for the end of the quiet hours
	Times    []time.Time            `json:"times"`
	Withheld int                    `json:"withheld"`
}

// Verdicts that are too old to be news, and to be remembered.
const (
	maxAge   = time.Hour
	remember = 7 * 24 * time.Hour
	maxHeld  = 1000
	maxWords = 200
)

func open(name string, r Rules, s sender, env export.Env) (*Exporter, error) {
	if len(r.Verdicts) == 0 {
		r.Verdicts = faults()
	}
	q, err := parseQuiet(r.QuietHours)
	if err != nil {
		return nil, err
	}
	x := &Exporter{name: name, rules: r, quiet: q, sender: s, log: env.Logger, now: time.Now}
	if env.StateDir != "" {
		x.file = filepath.Join(env.StateDir, "notify", name+".json")
	}
	x.state = state{Sent: map[string]time.Time{}, Held: map[string]msg.Verdict{}}
	b, err := os.ReadFile(x.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return x, nil
	case err == nil:
		err = json.Unmarshal(b, &x.state)
	}
	if err != nil {
		return nil, fmt.Errorf("notify: %s: %w", x.file, err)
	}
	x.share()
	return x, nil
}

// Select implements export.Selector: the verdicts that were held, when the quiet hours are over, and
// those that are to be sent, which may resolve them.
func (x *Exporter) Select(b *export.Batch) *export.Batch {
	out := &export.Batch{ID: b.ID}
	if held := x.held.Load(); held != nil && !x.quiet.at(x.now()) && x.held.CompareAndSwap(held, nil) { // once
		out.Verdicts = append(out.Verdicts, *held...)
	}
	for i := range b.Verdicts {
		if v := &b.Verdicts[i]; x.wanted(v) {
			out.Verdicts = append(out.Verdicts, *v)
		}
	}
	return out
}

func (x *Exporter) wanted(v *msg.Verdict) bool {
	return v.Cause == (msg.SpanID{}) && slices.Contains(x.rules.Verdicts, v.Name) && !matches(x.rules.SilenceAgents, v.Agent) && !matches(x.rules.SilenceTools, v.Tool)
}

func matches(patterns []string, name string) bool {
	return name != "" && slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, name); return ok })
}

func keyOf(v *msg.Verdict) string {
	return fmt.Sprintf("%s-%s-%x", hex.EncodeToString(v.Span[:]), v.Name, v.Since/int64(time.Millisecond))
}

// Export implements export.Exporter.
func (x *Exporter) Export(ctx context.Context, b *export.Batch) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.now()
	over := make(map[string]bool) // by key: the batch has the end of it as well
	for i := range b.Verdicts {
		over[keyOf(&b.Verdicts[i])] = b.Verdicts[i].Resolved != 0
	}
	groups, order := map[string]*Notification{}, []string{}
	changed := false
	for i := range b.Verdicts {
		v := &b.Verdicts[i]
		key := keyOf(v)
		status := x.status(v, key, over[key], now)
		switch status {
		case "":
			continue
		case "held":
			x.state.Held[key], changed = *v, true
			continue
		case "over":
			delete(x.state.Held, key)
			changed = true
			continue
		}
		group := status + "\x00" + v.Tenant + "\x00" + v.Session
		n := groups[group]
		if n == nil {
			n = &Notification{Version: 1, Status: status, Key: key, Session: v.Session, Link: x.link(v), At: now.UTC()}
			groups[group] = n
			order = append(order, group)
		}
		if !slices.ContainsFunc(n.Alerts, func(a Alert) bool { return a.Key == key }) {
			n.Alerts = append(n.Alerts, alert(v, key))
		}
	}
	for _, g := range order {
		if err := x.notify(ctx, groups[g], now); err != nil {
			return err
		}
	}
	if changed {
		return x.save()
	}
	return nil
}

// status is the notification that a verdict needs: firing, resolved, held; over: the one that is held is
// dropped; empty: nothing. over means that the batch has the end of the verdict as well.
func (x *Exporter) status(v *msg.Verdict, key string, over bool, now time.Time) string {
	_, sent := x.state.Sent[key]
	_, waits := x.state.Held[key]
	switch {
	case v.Resolved != 0 && waits: // before anybody was woken
		return "over"
	case v.Resolved != 0 && sent:
		return "resolved"
	case v.Resolved != 0 || sent || over:
		return ""
	case x.quiet.at(now):
		if waits || len(x.state.Held) >= maxHeld {
			return ""
		}
		return "held"
	case !waits && now.Sub(time.Unix(0, v.At)) > maxAge:
		x.log.Warn("a verdict is not sent: it is too old", "to", x.name, "verdict", v.Name, "evidence", v.Evidence)
		return ""
	}
	return "firing"
}

// notify sends a notification and remembers that.
func (x *Exporter) notify(ctx context.Context, n *Notification, now time.Time) error {
	s := &x.state
	s.Times = slices.DeleteFunc(s.Times, func(t time.Time) bool { return now.Sub(t) > time.Hour })
	if n.Status == "firing" && len(s.Times) >= x.rules.MaxPerHour {
		s.Withheld++
		x.log.Warn("a notification is not sent: the limit of an hour is reached", "to", x.name, "limit", x.rules.MaxPerHour, "verdict", n.Alerts[0].Verdict, "evidence", n.Alerts[0].Evidence)
		for _, a := range n.Alerts {
			delete(s.Held, a.Key)
		}
		return x.save()
	}
	n.Withheld = s.Withheld
	ctx, cancel := context.WithTimeout(ctx, time.Duration(x.rules.Timeout))
	defer cancel()
	if err := x.sender.send(ctx, n); err != nil {
		return fmt.Errorf("notify: %s: %w", x.name, err)
	}
	s.Withheld = 0
	for _, a := range n.Alerts {
		delete(s.Held, a.Key)
		if n.Status == "firing" {
			s.Sent[a.Key] = now
		} else {
			delete(s.Sent, a.Key)
		}
	}
	if n.Status == "firing" {
		s.Times = append(s.Times, now)
	}
	for key, at := range s.Sent {
		if now.Sub(at) > remember {
			delete(s.Sent, key)
		}
	}
	return x.save()
}

// share makes the verdicts that are held known to Select.
func (x *Exporter) share() {
	held := slices.Collect(maps.Values(x.state.Held))
	x.held.Store(&held)
}

// save replaces the file of the state.
func (x *Exporter) save() error {
	if x.share(); x.file == "" {
		return nil
	}
	b, err := json.Marshal(&x.state)
	if err != nil {
		return fmt.Errorf("notify: state: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(x.file), 0o700); err != nil {
		return fmt.Errorf("notify: state: %w", err)
	}
	if err := os.WriteFile(x.file+".new", b, 0o600); err != nil {
		return fmt.Errorf("notify: state: %w", err)
	}
	if err := os.Rename(x.file+".new", x.file); err != nil {
		return fmt.Errorf("notify: state: %w", err)
	}
	return nil
}

func (x *Exporter) link(v *msg.Verdict) string {
	if x.rules.Link == "" || v.Session == "" {
		return ""
	}
	return strings.NewReplacer("{session}", escapePath(v.Session), "{trace}", v.TraceID.String()).Replace(x.rules.Link)
}

func alert(v *msg.Verdict, key string) Alert {
	a := Alert{
		Key: key, Verdict: v.Name, Severity: severity(v.Name), Evidence: v.Evidence, Path: v.Path, Advice: verdict.Advice(v.Name), LastWords: clip(v.Words, maxWords), Agent: v.Agent, Tool: v.Tool,
		Source: v.Source, Format: v.Format, Tenant: v.Tenant, TraceID: v.TraceID.String(), SpanID: v.Span.String(), Since: time.Unix(0, v.Since).UTC(), Why: v.Resolution,
	}
	if v.TraceID == (msg.TraceID{}) { // of a budget, or a change
		a.TraceID = ""
	}
	if v.Resolved != 0 {
		at := time.Unix(0, v.Resolved).UTC()
		a.Resolved = &at
	}
	return a
}

// severity is how urgent a verdict is: work that cannot go on by itself is critical, a wait for
// a person is no fault.
func severity(verdict string) string {
	switch verdict {
	case "child_dead", "zombie", "never_started", attribution.BudgetFast, attribution.BudgetSpent:
		return "critical"
	case "waiting_permission", "waiting_person":
		return "info"
	}
	return "warning"
}

// summary is the first alert in a line, with how many there are.
func (n *Notification) summary() string {
	a := &n.Alerts[0]
	s := fmt.Sprintf("%s: %s", a.Verdict, a.Evidence)
	if n.Status == "resolved" {
		s = fmt.Sprintf("resolved (%s): %s", cmp.Or(a.Why, "over"), s)
	}
	if more := len(n.Alerts) - 1; more > 0 {
		s += fmt.Sprintf(" (and %d more)", more)
	}
	return s
}

// clip cuts a text at a rune, and drops its control characters.
func clip(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 { // and marks that reverse text
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// Rewrite implements export.Rewriter: the verdicts that are held have the last words of their agents.
func (x *Exporter) Rewrite(strip func(*export.Batch) bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	b := &export.Batch{Verdicts: slices.Collect(maps.Values(x.state.Held))}
	if !strip(b) {
		return nil
	}
	clear(x.state.Held)
	for _, v := range b.Verdicts {
		x.state.Held[keyOf(&v)] = v
	}
	return x.save()
}

// Close implements export.Exporter.
func (x *Exporter) Close(context.Context) error { return nil }

var (
	_ export.Exporter = (*Exporter)(nil)
	_ export.Selector = (*Exporter)(nil)
	_ export.Rewriter = (*Exporter)(nil)
)
