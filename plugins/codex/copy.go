package codex

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// history is the copied history with which a thread begins. Its records carry the
// instant of the copy for their time; it ends with the first record that was
// written later.
type history struct {
	From    string // the thread that was copied
	Begun   bool   `json:",omitempty"`
	Instant int64  `json:",omitempty"` // of the last copied record
	Records int    `json:",omitempty"`
}

const (
	// straddle is how far apart two records of a copy may be: it is written at
	// once, but a millisecond may end meanwhile.
	straddle = 5e6
	// late is how long after the copy a record is still taken for a part of it if
	// its turn is older than the thread.
	late = 1e9
)

// copying notes that the record is copied, and what it says of the sum so far.
func (d *thread) copying(r *record) {
	if d.Copy == nil {
		d.Copy = &history{From: ident(r.p.Get("id"))}
	}
	h := d.Copy
	h.Begun, h.Records = true, h.Records+1
	if r.time != 0 {
		h.Instant = r.time
	}
	if info := r.p.Get("info"); info.Is(jsonv.Object) && r.p.Get("type").Equal("token_count") {
		if total := read(info.Get("total_token_usage")); total != (counts{}) {
			d.Total = total
		}
	}
	if model := r.p.Get("model"); model.Is(jsonv.String) && r.root.Get("type").Equal("turn_context") {
		d.Model = ident(model)
	}
}

// copied reports whether the record is a part of the copied history.
func (d *thread) copied(r *record) bool {
	h := d.Copy
	if h == nil {
		return false
	}
	if h.belongs(r, d.Thread) {
		d.copying(r)
		return true
	}
	if h.Begun {
		m := d.status(r, "copied:"+d.Thread, "copied_history")
		m.SetAttr("from", h.From)
		m.SetAttr("records", strconv.Itoa(h.Records))
	}
	d.Copy = nil
	return false
}

// belongs reports whether the record is a part of the copy.
func (h *history) belongs(r *record, thread string) bool {
	turn, dated := born(r.turn())
	ours, known := born(thread)
	dated = dated && known
	older := dated && turn < ours
	if !h.Begun { // no second session_meta: only what is older than the thread is certain
		return older
	}
	switch gap := r.time - h.Instant; {
	case gap == 0 || r.time == 0:
		return true
	case gap < 0 || gap > late:
		return false
	case dated:
		return older
	default:
		return gap <= straddle
	}
}

// born is the time at which an id was made, in milliseconds, if the id is a UUID
// of version 7, which begins with it.
func born(id string) (ms uint64, ok bool) {
	const text = 36
	if len(id) != text || id[14] != '7' {
		return 0, false
	}
	b, err := hex.DecodeString(strings.ReplaceAll(id[:13], "-", ""))
	if err != nil || id[8] != '-' {
		return 0, false
	}
	for _, c := range b {
		ms = ms<<8 | uint64(c)
	}
	return ms, true
}
