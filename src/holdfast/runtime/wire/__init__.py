"""What both sides share: the messages, how they are framed and encoded, and one page of memory."""
