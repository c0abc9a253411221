package assemble

import (
	"cmp"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// Chains are the conversations of formats whose messages may name theirs by an earlier response (Settings.Chains).
type Chains struct{ *Assembler }

// of is the group that has the responses of a source whose ids have the hash of this one.
func (c Chains) of(tenant, format, source, response string) (*group, error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(response)) // it does not fail
	shard := strconv.Itoa(int(h.Sum32() % link.ChainShards))
	return c.group(link.Key{Tenant: tenant, Session: "chain\x00" + format + "\x00" + source + "\x00" + shard})
}

// chained reports whether messages of the format may name their conversation by a response.
func (c Chains) chained(format string) bool {
	return c.settings.Chains != nil && c.settings.Chains(format)
}

// Resolve replaces the response by which a message names its session, its run or both, by the session and the run that the
// response was in. It is called before anything else is done with the message.
func (c Chains) Resolve(m *msg.Message, tenant, format, source string) error {
	if !c.chained(format) {
		return nil
	}
	id := m.Session
	if computed(id) || m.Run != id && !computed(m.Run) && m.Run != "" {
		id = m.Run
	}
	if id == "" || computed(id) {
		return nil
	}
	g, err := c.of(tenant, format, source, id)
	if err != nil {
		return err
	}
	at, ok := g.Chain.At(id)
	if !ok || m.Session != id && m.Session != at.Session {
		return nil
	}
	m.Session = at.Session
	if m.Run == id {
		m.Run = at.Run
	}
	return nil
}

// computed reports whether a decoder has made up a name, which no protocol has.
func computed(name string) bool {
	return strings.HasPrefix(name, "conversation:") || strings.HasPrefix(name, "run:")
}

// Remember notes where the response of a message is.
func (c Chains) Remember(m *msg.Message, tenant, format, source string, now time.Time) error {
	if m.ResponseID == "" || m.Run == "" || !c.chained(format) {
		return nil
	}
	id := cmp.Or(m.Attr(link.ReusedID), m.ResponseID)
	g, err := c.of(tenant, format, source, id)
	if err != nil {
		return err
	}
	if g.Chain == nil {
		g.Chain = new(link.Chain)
	}
	if g.Chain.Add(id, link.Seat{Session: m.Session, Run: m.Run}) {
		g.dirty, g.read = true, now
	}
	return nil
}
