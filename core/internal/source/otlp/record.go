package otlp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/msg"
)

// record records the frames of a request and returns its response once they are safe.
func (s *Server) record(ctx context.Context, t *transcript) *verdict {
	if len(t.pieces) == 0 {
		return &verdict{} // a request without records is a success
	}
	ctx, cancel := context.WithTimeout(ctx, s.RecordTimeout)
	defer cancel()
	now := time.Now().UnixNano()
	turns := make([]*source.Turn, len(t.streams))
	defer func() {
		for _, turn := range turns {
			if turn != nil {
				s.recordings.Release(turn)
			}
		}
	}()
	// Always in the same order, so that two requests do not wait for each other.
	order := make([]int, len(t.streams))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(t.streams[a].key, t.streams[b].key) })
	for _, i := range order {
		to := &t.streams[i]
		turn, err := s.recordings.Take(ctx, to.format, source.ID{Key: to.key, Origin: to.origin, Anchor: now})
		if err != nil {
			return s.unrecorded(err)
		}
		turns[i] = turn
	}
	for i := range t.pieces {
		p := &t.pieces[i]
		f := frame.Frame{Kind: frame.Line, At: now, Data: t.buf[p.from:p.to]}
		if p.tooLong {
			f.Reason, f.Dropped = msg.ReasonTooLong, 1
		}
		if err := turns[p.stream].Record(ctx, &f); err != nil {
			return s.unrecorded(err)
		}
	}
	for _, turn := range turns {
		if err := turn.Sync(ctx); err != nil {
			return s.unrecorded(err)
		}
	}
	v := &verdict{}
	if t.rejected > 0 {
		v.rejected, v.message = t.rejected, fmt.Sprintf("records of more than %d bytes are not decoded", maxRecord)
	}
	return v
}

// unrecorded is the response to a request that the journal has no room for.
func (s *Server) unrecorded(err error) *verdict {
	s.Logger.Warn("a request is not recorded", "error", err)
	return refuse(unavailable, "it cannot be recorded now")
}

// quarantine records that a request was refused as invalid: its sender drops it, and nothing else
// would show the loss.
func (s *Server) quarantine(ctx context.Context, g *signal, data []byte, isJSON bool, why error) {
	s.Logger.Warn("a request is not valid", "path", g.path, "bytes", len(data), "error", why)
	about := struct {
		Path  string `json:"path"`
		Bytes int    `json:"bytes"`
		Error string `json:"error"`
		Begin string `json:"begin,omitempty"`
	}{g.path, len(data), why.Error(), ""}
	if isJSON {
		begin := data[:min(len(data), 4<<10)]
		if len(begin) < len(data) {
			begin = frame.WithoutCutWord(begin)
		}
		about.Begin = strings.ToValidUTF8(string(begin), "\uFFFD")
	}
	text, err := json.Marshal(about)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.RecordTimeout)
	defer cancel()
	now := time.Now().UnixNano()
	turn, err := s.recordings.Take(ctx, s.router.format, source.ID{Key: "invalid-" + s.router.format, Origin: "otlp://invalid" + g.path, Anchor: now})
	if err == nil {
		err = turn.Record(ctx, &frame.Frame{Kind: frame.Line, At: now, Data: text, Dropped: int64(len(data)), Reason: source.ReasonProtocol})
		s.recordings.Release(turn)
	}
	if err != nil {
		s.Logger.Warn("an invalid request is not recorded", "error", err)
	}
}
