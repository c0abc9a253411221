package deadletter

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

// maxPayload is how much of a row is kept for people. Its record is kept whole.
const maxPayload = 1 << 20

// Refused makes an entry of a batch of one record that an exporter refused.
func Refused(exporter string, b *export.Batch, why error, now int64) (Entry, error) {
	record, err := b.MarshalBinary()
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Exporter: exporter, Record: record}
	l := &e.DeadLetter
	l.Stage, l.Reason, l.Detail, l.Seen, l.Ver = "export", msg.ReasonRefusedByDB, exporter+": "+why.Error(), now, 1
	var name string
	var shown any
	switch {
	case len(b.Messages) > 0:
		m := b.Messages[0]
		e.Kind, name, shown = "message", m.Host.ID.String(), m.Row()
		l.Tenant, l.Source, l.Format, l.Session, l.Origin, l.Offset = m.Host.Tenant, m.Host.Source, m.Host.Format, m.Session, m.Host.Origin, m.Host.Offset
	case len(b.Spans) > 0:
		s := b.Spans[0]
		e.Kind, name, shown = "span", s.TraceID.String()+s.ID.String(), s
		l.Tenant, l.Source, l.Format, l.Session = s.Tenant, s.Source, s.Format, s.Session
	case len(b.Verdicts) > 0:
		v := &b.Verdicts[0]
		e.Kind, name, shown = "verdict", v.Span.String()+v.Name+strconv.FormatUint(v.Ver, 10), v
		l.Tenant, l.Source, l.Format, l.Session = v.Tenant, v.Source, v.Format, v.Session
	case len(b.DeadLetters) > 0:
		d := &b.DeadLetters[0]
		e.Kind, name, shown = "letter", d.ID.String(), d
		l.Tenant, l.Source, l.Format, l.Session, l.Origin, l.Offset = d.Tenant, d.Source, d.Format, d.Session, d.Origin, d.Offset
	case len(b.Ledger) > 0:
		d := &b.Ledger[0]
		e.Kind, name, shown = "ledger", d.Stream, d
		l.Tenant, l.Source, l.Format, l.Origin = d.Tenant, d.Source, d.Format, d.Origin
	case len(b.Rows) > 0:
		d := &b.Rows[0]
		e.Kind, name, shown = "row", d.Table+" "+msg.HashKey(string(d.Data)), json.RawMessage(cmp.Or(d.Shown, "null"))
		if d.Table == "dead_letters" {
			e.Kind = "letter"
		}
	case len(b.Streams) > 0:
		d := &b.Streams[0]
		e.Kind, name, shown = "stream", d.Stream+" "+strconv.FormatInt(d.Pace.Start, 10), d
		l.Tenant, l.Source, l.Format, l.Session, l.Origin = d.Tenant, d.Source, d.Format, d.Session, d.Origin
	}
	payload, err := json.Marshal(shown)
	if err != nil {
		return Entry{}, fmt.Errorf("dead letters: %w", err)
	}
	l.Payload, l.Bytes = payload[:min(len(payload), maxPayload)], int64(len(payload))
	l.ID = msg.NewDeadLetterID(l.Tenant, l.Source, "export", exporter+" "+e.Kind, name)
	return e, nil
}
