package assemble

import (
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/earshot-dev/earshot/core/internal/anomaly"
	"github.com/earshot-dev/earshot/core/msg"
)

// finder notes what the detectors find in a run.
func (g *group) finder(out Emitter, r *run) func(anomaly.Finding) {
	return func(f anomaly.Finding) {
		if !g.flushing { // it will be found again
			out.Finding(g.key.format, f.Kind)
		}
		if len(r.Found) >= maxFound {
			return
		}
		e := msg.SpanEvent{Time: f.Time, Name: msg.EventFinding, Attrs: []msg.Attr{
			{Key: msg.FindingKind, Value: f.Kind}, {Key: msg.FindingCount, Value: strconv.FormatInt(f.Count, 10)},
		}}
		if f.Tool != "" {
			e.Attrs = append(e.Attrs, msg.Attr{Key: msg.FindingTool, Value: strings.Clone(f.Tool)})
		}
		r.Found = append(r.Found, e)
		r.changed, r.Given = true, false
	}
}

// watchResult looks at a call that has its result. The framework's own machinery
// repeats itself for good reasons, and so do delegations' results.
func (g *group) watchResult(out Emitter, r *run, c *call, e outcome) {
	if r != nil && c.Delegation {
		r.Delegating--
	}
	if r == nil || c.Internal || c.Delegation {
		return
	}
	r.Detect.Result(anomaly.Result{
		Call: c.ID, Tool: c.Tool, Arguments: c.Hash, Content: e.Hash, Failed: e.Outcome != msg.OutcomeOK, Begun: c.Start, Ended: e.Time,
	}, g.finder(out, r))
}

// watchDelegation looks at a delegation that begins.
func (g *group) watchDelegation(out Emitter, r *run, c *call, m *msg.Message) {
	if !c.Delegation {
		return
	}
	r.Delegating++
	r.Detect.Delegated(m.Tool.Name, r.Delegating, m.Time, g.finder(out, r))
}

// watchSilence looks at what a run, or rather its model, says after a pause. It
// was silent only if it waited for nothing: a call, a person.
func (g *group) watchSilence(out Emitter, r *run, m *msg.Message) {
	switch m.Kind {
	case msg.Assistant, msg.Reasoning, msg.ToolCall, msg.Delegation:
	default:
		return
	}
	if m.Time-r.Last < 60e9 || r.Ended > bySilence { // a pause worth looking at
		return
	}
	for _, c := range g.Open {
		if c.Run == r.ID {
			return
		}
	}
	if n := len(r.Events); n > 0 && (r.Events[n-1].Name == msg.RunPause.String() || r.Events[n-1].Name == msg.WaitStart.String()) {
		return
	}
	r.Detect.Gap(r.Last, m.Time, g.finder(out, r))
}

// hash tells texts apart. Texts of one run come in one form, so that the body of a
// JSON string need not be unescaped.
func hash(t msg.Text) uint64 {
	if raw, _ := t.Alias(); raw != nil {
		return xxhash.Sum64(raw)
	}
	return xxhash.Sum64String(t.String())
}
