-- Behind the last part of a flush: what the bus is told of it.
bus.publish(1::smallint, $1, $2, $3, $4, $5, $6)
