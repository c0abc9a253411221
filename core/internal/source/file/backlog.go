package file

// Backlog returns how many of the files that were there at the start are still to be read to
// their end, and about how many bytes of them: an archive counts as it is packed, and a file that is
// not compared with what an earlier run read of it counts as one that has not changed. It is
// called from another goroutine.
func (s *Source) Backlog() (files int, bytes int64) { return s.files.backlog() }

func (s *fileset) backlog() (files int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.schedule.empty() {
		return 0, 0
	}
	for _, f := range s.byInode {
		if n := f.unread(); n > 0 {
			files++
			bytes += n
		}
	}
	return files, bytes
}

// unread is about how many bytes of a file that was there at the start are still to be read.
// The fileset's mu is held.
func (f *file) unread() int64 {
	switch {
	case !f.initial:
		return 0
	case f.stream != nil:
		return f.stream.rest(f)
	case len(f.previous) > 0:
		return f.previous[0].rest(f)
	}
	return f.stamp.size
}

// rest is about how many bytes of f the stream has not delivered.
func (st *stream) rest(f *file) int64 {
	if f.kind == archive { // the offset is one of the content
		return f.stamp.size
	}
	return max(0, f.stamp.size-st.fingerprint.off)
}
