package file

import (
	"errors"
	"io/fs"
)

// The reasons of Sink.Trouble.
const (
	ReasonDirectory  = "is_directory"
	ReasonNotRegular = "not_regular"
	ReasonUnreadable = "unreadable" // read as soon as it can be
	ReasonRead       = "read_error"
	ReasonArchive    = "corrupt_archive" // read up to where it is whole
	ReasonUnread     = "gone_unread"     // deleted or truncated before all of it was read
	ReasonReplay     = "gone_replay"     // wanted again after it was gone
	ReasonRefused    = "refused"         // the pipeline did not take it
)

func reasonOf(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return ReasonUnreadable
	}
	return ReasonRead
}

// trouble tells the sink, once until the path is well again.
func (s *Source) trouble(path, reason, detail string) {
	s.mu.Lock()
	known := s.troubles[path] == reason
	s.troubles[path] = reason
	s.mu.Unlock()
	if known {
		return
	}
	s.sink.Trouble(path, reason, detail)
}

func (s *Source) well(path string) {
	s.mu.Lock()
	delete(s.troubles, path)
	s.mu.Unlock()
}
