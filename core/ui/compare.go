package ui

import (
	"errors"
	"time"

	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/ui/address"
)

// comparePage compares two traces or sessions, and without these two versions, or the range of time
// with the one before.
type comparePage struct {
	State    address.State
	A, B     string // as they were asked for
	Versions []string
	VA, VB   string

	Tenants []link // of which each has a session that is compared, where none was picked
	Diff    *inspect.Difference
	Rows    []diffRow
	Hidden  int // responses that both have
	Changes []inspect.Change
	Before  string // the range of A, without ids and versions
	Now     string
}

// diffRow is a row of a difference.
type diffRow struct {
	inspect.DiffRow
	First bool // the first difference
	Class string
	Delta string
	Slow  bool // B takes much longer
}

// maxIndent is the depth from which deeper steps are not indented further.
const maxIndent = 8

// Indent is the class of the row's depth.
func (r diffRow) Indent() int { return min(r.Depth, maxIndent) }

func (u *UI) compare(r request) (string, any, error) {
	p := comparePage{State: r.State, A: r.State.Get("a"), B: r.State.Get("b"), VA: r.State.Get("va"), VB: r.State.Get("vb")}
	if p.A != "" && p.B != "" {
		return "", &p, u.compareTraces(r, &p)
	}
	err := u.q.Each(r.Context(), "SELECT agent_version FROM v_tool_calls WHERE agent_version != '' GROUP BY agent_version ORDER BY max(ts) DESC LIMIT 50", nil, func(v []any) error {
		p.Versions = append(p.Versions, "")
		return scan(v, &p.Versions[len(p.Versions)-1])
	})
	if err != nil {
		return "", &p, err
	}
	from, to := r.State.Times()
	b := inspect.Sample{From: from, To: to, Version: p.VB}
	a := b
	a.Version = p.VA
	if p.VA == "" || p.VB == "" {
		p.VA, p.VB = "", ""
		a = inspect.Sample{From: from.Add(-to.Sub(from)), To: from}
		b.Version = ""
		if r.State.Range().All() {
			return "", &p, nil
		}
	}
	p.Before, p.Now = stretch(a), stretch(b)
	p.Changes, err = inspect.Changes(r.Context(), u.q, a, b, u.prices, r.Now)
	return "", &p, err
}

// Lone is a sentence for when all work is in one of the two, which leaves nothing to compare.
func (p *comparePage) Lone() string {
	var a, b bool
	for _, c := range p.Changes {
		a, b = a || c.A.Count > 0, b || c.B.Count > 0
	}
	switch {
	case !a && b:
		return "Nothing has ended in A: there is nothing to compare B with."
	case a && !b:
		return "Nothing has ended in B: there is nothing to compare A with."
	}
	return ""
}

// Conversation is the address of a session that is compared: that of the picked tenant, where one is.
func (p *comparePage) Conversation(id string) string {
	of := sessionPage{Session: inspect.Session{ID: id}, tenant: p.State.Get("tenant")}
	return of.to()
}

// stretch names the work of a sample.
func stretch(s inspect.Sample) string {
	if s.Version != "" {
		return "version " + s.Version
	}
	return s.From.Local().Format("Jan 2 15:04") + " to " + s.To.Local().Format("Jan 2 15:04")
}

func (u *UI) compareTraces(r request, p *comparePage) (err error) {
	tenant := r.State.Get("tenant")
	p.Diff, err = inspect.Diff(r.Context(), u.q, inspect.Ref{Tenant: tenant, ID: p.A}, inspect.Ref{Tenant: tenant, ID: p.B}, u.prices, r.Now)
	var several *inspect.AmbiguousError
	if errors.As(err, &several) {
		for _, tenant := range several.Tenants {
			p.Tenants = append(p.Tenants, link{tenant, r.State.With("tenant", tenant).String()})
		}
		return nil
	}
	if err != nil {
		return err
	}
	for i, row := range p.Diff.Rows {
		if row.Kind == "chat" && row.A != nil && row.B != nil {
			p.Hidden++
			continue
		}
		d := diffRow{DiffRow: row, First: i == p.Diff.Diverges, Class: map[string]string{"=": "same", "~": "other", "-": "gone", "+": "new"}[row.Mark]}
		if row.A != nil && row.B != nil {
			d.Delta = inspect.Signed(row.B.DurationMS - row.A.DurationMS)
			d.Slow = row.B.DurationMS > 2*row.A.DurationMS && row.B.DurationMS-row.A.DurationMS > float64(time.Second/time.Millisecond)
		}
		p.Rows = append(p.Rows, d)
	}
	return nil
}
