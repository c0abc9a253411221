package assemble

import (
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/internal/anomaly"
	"github.com/earshot-dev/earshot/core/msg"
)

// minPause is the shortest pause of a run that may be an anomaly.
const minPause = int64(time.Minute)

// report adds the anomalies that were detected in a run to its span.
func (g handler) report(r *run, found []anomaly.Finding) {
	for _, f := range found {
		if !g.flushing { // it will be detected again
			g.out.finding(g.key.Format, f.Kind)
		}
		if len(r.Findings) >= maxFindings {
			continue
		}
		e := msg.SpanEvent{Time: f.Time, Name: msg.EventFinding, Attrs: []msg.Attr{
			{Key: msg.FindingKind, Value: f.Kind}, {Key: msg.FindingCount, Value: strconv.FormatInt(f.Count, 10)},
		}}
		if f.Tool != "" {
			e.Attrs = append(e.Attrs, msg.Attr{Key: msg.FindingTool, Value: strings.Clone(f.Tool)})
		}
		r.Findings = append(r.Findings, e)
		r.touch()
	}
}

// detectResult checks a call that has its result.
func (g handler) detectResult(r *run, c *call, e callResult) {
	found := r.Anomalies.Result(anomaly.Result{
		Call: c.ID, Tool: c.Tool, Arguments: c.Hash, Content: e.Hash, Failed: e.Outcome != msg.OutcomeOK, Begun: c.Start, Ended: e.Time,
	})
	if found != nil {
		g.report(r, found)
	}
}

// detectFanOut checks a delegation that begins.
func (g handler) detectFanOut(r *run, c *call, m *msg.Message) {
	r.Delegations++
	g.report(r, r.Anomalies.Delegated(m.Tool.Name, r.Delegations, m.Time))
}

// detectSilence checks a message of a run's model after a pause. The run was silent only if
// it waited for nothing: no call, no person.
func (g handler) detectSilence(r *run, m *msg.Message) {
	switch m.Kind {
	case msg.Assistant, msg.Reasoning, msg.ToolCall, msg.Delegation:
	default:
		return
	}
	if r.Ended > bySilence {
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
	g.report(r, anomaly.Gap(r.Last, m.Time))
}
