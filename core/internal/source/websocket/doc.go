// Package websocket listens to a WebSocket as a client.
//
// Each connection is a stream, unless Settings.Resume makes one of all of them: its frames are the messages that the server sends,
// Text or Binary, and Close when the server closed the connection by the protocol.
// What the client itself sends after connecting is configuration and not recorded.
//
// It connects again for ever, after a pause that grows from one second to thirty
// with every failure; half of it is random. A connection on which a message came is
// no failure, however it ended. The server is pinged; one that does not answer is
// given up. Messages are taken from the connection only as fast as they are
// recorded, so a recorder without room holds up the server and no memory fills.
//
// Of a message longer than the limit the head is kept and set aside, and the
// connection goes on.
package websocket
