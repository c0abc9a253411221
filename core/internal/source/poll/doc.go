// Package poll requests a reload API again and again and records its answers when they
// have changed: with If-None-Match where the server sends an ETag, and by a hash of the
// answer where it does not.
//
// Each answer that has changed is a stream of one Body frame (of NDJSON, a Line for
// each line), so that a decoder sees it as a whole. The ETags and hashes are the State of a
// recording without frames, the ledger, and so survive a restart. A crash between the two
// records an answer twice, which changes no table.
//
// # Pages
//
// The configuration (page_request), or the decoder's description of the format (pages: auto),
// describes how the API divides a list; see Pages:
//
//	number  page=1, 2, ... until the total, an empty page, or one that repeats the page
//	        before (a server without pages)
//	after   the cursor behind a full page, which is either a field of the page's last item
//	        or named by the answer. A full page is not requested again: the API only
//	        appends. A later change in one is missed.
//
// # Items of a list
//
// With Pages.Each, a URL that ends like Each.List is a list of which each item has a URL of
// its own, such as the sessions of a server. The list is not recorded; for each item whose
// entry is new or has changed, its URL is requested and recorded, with the list's parameters
// but its pages. So the whole history is read once, and then the changes. The list is read
// every interval, the items one after the other.
//
// A failure is retried after the interval, or after Retry-After, with pauses that double up
// to five minutes; that of an item has no other item wait.
package poll
