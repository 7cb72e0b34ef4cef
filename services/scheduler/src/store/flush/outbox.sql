-- Value of a flush: writes the outbox rows for the bus. Run by store::flush::statement.
bus.publish(1::smallint /* runs */, $1, $2, $3, $4, $5, $6)
