// Package bounded has a set, a map and functions of lists that evict their oldest entries, so that the memory of
// a process that runs for months does not grow with the ids it has seen. A decoder's state
// uses Set (rule D11), the meter Map.
package bounded

import (
	"encoding/json"
	"slices"
)

// indexed is the number of members from which a set has an index: fewer are searched faster
// one by one.
const indexed = 32

// Set is a set of the last members that were added. The zero value is empty; the JSON is
// the members, oldest first.
type Set[T comparable] struct {
	members []T // a ring, the oldest at next
	next    int
	at      map[T]struct{}
}

// Len returns the number of members.
func (s *Set[T]) Len() int { return len(s.members) }

// Has reports whether v is a member.
func (s *Set[T]) Has(v T) bool {
	if len(s.members) < indexed {
		return slices.Contains(s.members, v)
	}
	if s.at == nil {
		s.at = make(map[T]struct{}, len(s.members))
		for _, m := range s.members {
			s.at[m] = struct{}{}
		}
	}
	_, ok := s.at[v]
	return ok
}

// Add adds v unless it is a member, and reports whether it did. Beyond the limit the oldest
// member is forgotten.
func (s *Set[T]) Add(v T, limit int) bool {
	if s.Has(v) {
		return false
	}
	if len(s.members) < limit {
		if s.next > 0 { // after a lower limit
			s.members, s.next = s.all(), 0
		}
		s.members = append(s.members, v)
	} else {
		delete(s.at, s.members[s.next])
		s.members[s.next] = v
		s.next = (s.next + 1) % len(s.members)
	}
	if s.at != nil {
		s.at[v] = struct{}{}
	}
	return true
}

// Remove forgets v.
func (s *Set[T]) Remove(v T) {
	if i := slices.Index(s.members, v); i >= 0 {
		members := s.all()
		i = (i - s.next + len(members)) % len(members)
		s.members, s.next = slices.Delete(members, i, i+1), 0
		delete(s.at, v)
	}
}

// all returns the members, oldest first.
func (s *Set[T]) all() []T { return slices.Concat(s.members[s.next:], s.members[:s.next]) }

// IsZero reports whether the set is empty.
func (s Set[T]) IsZero() bool { return len(s.members) == 0 }

// MarshalJSON implements json.Marshaler.
func (s Set[T]) MarshalJSON() ([]byte, error) { return json.Marshal(s.all()) }

// UnmarshalJSON implements json.Unmarshaler.
func (s *Set[T]) UnmarshalJSON(b []byte) error {
	*s = Set[T]{}
	return json.Unmarshal(b, &s.members)
}
