package assemble

import "github.com/earshot-dev/earshot/core/internal/assemble/link"

// ParseKey returns the session of a group's key in the store, or of a fact's. A group without a format is that of
// a correlation.
func ParseKey(s string) (RunRef, error) {
	k, err := link.ParseKey(s)
	if session, ok := sessionOfFact(k); ok {
		return RunRef{Tenant: k.Tenant, Session: session}, err
	}
	return RunRef{Tenant: k.Tenant, Format: k.Format, Session: k.Session}, err
}

// Erase drops the groups of sessions, and those of correlations, which have several sessions, whose
// state mentions one. It returns the keys of those that it held: the store may have them, and more.
func (a *Assembler) Erase(session func(tenant, session string) bool, mentions func(state []byte) bool) (keys []string, err error) {
	for key, g := range a.groups {
		drop := session(key.Tenant, key.Session)
		if !drop && key.Format == "" {
			state, err := g.encode()
			if err != nil {
				return nil, err
			}
			drop = mentions(state)
		}
		if drop {
			keys = append(keys, key.String())
			delete(a.groups, key)
		}
	}
	for key := range a.evicted {
		if session(key.Tenant, key.Session) {
			delete(a.evicted, key)
		}
	}
	facts := a.out.views.facts
	for key := range facts {
		if r, err := ParseKey(key); err == nil && session(r.Tenant, r.Session) {
			keys = append(keys, key)
			delete(facts, key)
		}
	}
	a.last = nil
	return keys, a.copies.erase(mentions)
}
