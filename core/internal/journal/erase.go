package journal

import (
	"context"
	"fmt"

	"github.com/earshot-dev/earshot/core/frame"
)

// ReasonErased is that of frames that Erase removed.
const ReasonErased = "erased"

// Erase overwrites the selected frames, in place and for good. Readers, and backfills, find gaps
// of as many bytes instead. stream is the key that the checkpoint has for the recording. It returns
// how many bytes the frames had.
//
// Everything that was recorded before the call is looked at. A crash leaves segments as they were
// or as they are to be, but for the record that was being written, which is damaged then.
func (j *Journal) Erase(ctx context.Context, selected func(source, stream string, f *frame.Frame) bool) (erased int64, err error) {
	last, err := j.seal(ctx)
	if err != nil {
		return 0, fmt.Errorf("journal: erase: %w", err)
	}
	for _, g := range j.segments.list() {
		if g == last {
			break
		}
		n, err := j.segments.erase(g, selected)
		if erased += n; err != nil && !missing(err) {
			return erased, fmt.Errorf("journal: erase from segment %d: %w", g.id, err)
		}
	}
	return erased, nil
}

// seal ends the newest segment and returns the next.
func (j *Journal) seal(ctx context.Context) (next *seg, err error) {
	j.mu.Lock()
	if next = j.segments.newest(); next.planned > 0 {
		next = j.segments.roll()
	}
	err = j.writer.sync(ctx, j.writer.appended)
	j.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return next, j.segments.sealBefore(next)
}

// erase overwrites frames of a sealed segment.
func (s *segments) erase(g *seg, selected func(source, stream string, f *frame.Frame) bool) (erased int64, err error) {
	s.mu.Lock()
	size := g.size
	s.mu.Unlock()
	streams := make(map[uint64]*entry)
	if err := s.entries(g, func(e *entry) { streams[e.number] = e }); err != nil {
		return 0, err
	}
	file, err := s.dir.Disk.Edit(s.dir.File(g.id, extData)) // it may have been removed meanwhile
	if err != nil {
		return 0, err
	}
	defer file.Close()
	w := window{in: file, seed: g.seed}
	var r record
	for {
		ok, err := w.next(&r, size, true)
		if err != nil {
			return erased, err
		}
		if !ok {
			break
		}
		e := streams[r.stream]
		if r.kind != kindFrame || e == nil {
			continue
		}
		f, err := r.frame(nil)
		if err != nil || len(f.Data) == 0 || !selected(e.source, e.name(), &f) {
			continue
		}
		if _, err := file.WriteAt(r.erased(g.seed, &f), w.at); err != nil {
			return erased, err
		}
		erased += int64(len(f.Data))
	}
	if erased == 0 {
		return 0, nil
	}
	return erased, file.Sync()
}

// erased returns a record of the same size and position without the frame: a gap, or, where the
// frame has no room for its reason, a frame of zeros.
func (r *record) erased(seed uint32, f *frame.Frame) []byte {
	g := gap{reason: ReasonErased, bytes: f.End - f.Pos}
	dst := g.append(beginRecord(nil))
	size := headSize + len(r.payload)
	to := record{kind: kindGap, stream: r.stream, pos: r.pos, at: r.at}
	if len(dst) > size {
		to.kind, to.frameKind, to.flags = kindFrame, r.frameKind, r.flags
		dst = append(beginRecord(nil), r.payload...)
		clear(dst[len(dst)-len(f.Data):])
	}
	dst = append(dst, make([]byte, size-len(dst))...)
	endRecord(dst, 0, seed, &to)
	return dst
}
