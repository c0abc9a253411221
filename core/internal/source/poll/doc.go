// Package poll asks a reload API again and again and records its answers when they
// have changed: with If-None-Match where the server gives an ETag, and by a hash of
// the answer where it does not.
//
// Each answer that has changed is a stream of one Body frame (of NDJSON, a Line for
// each line), so that a decoder sees it as a whole. What was seen is the State of a
// recording without frames, and so remembered over restarts. A crash between the two
// records an answer twice, which changes no table.
//
// # Pages
//
//	agno   page=1, 2, ... until meta.total_pages, an empty page, or one that repeats
//	       the page before (a server that knows no pages)
//	letta  after=ID of the last item of a full page, limit= and order=asc when the
//	       URL does not say otherwise. A full page is not asked for again: the API
//	       only appends. What is changed in one later is not heard.
//
// # Backfill of AGNO
//
// A URL that ends in /sessions with pages agno is a list of sessions. It is not
// recorded; for each session whose entry is new or has changed, SESSION/runs is asked
// and recorded, with the list's parameters but its pages. So the whole history of an
// AgentOS is read once, and then what changes. The list is read every interval, the
// sessions one after the other.
//
// A failure is tried again after the interval, or after what Retry-After says, and
// later and later up to five minutes.
package poll
